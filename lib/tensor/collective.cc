#include "tensor/collective.h"

#include "tensor/compute.h"

namespace qlp {
namespace {

void record(Context& ctx, Collective kind, const RankGroup& group, const Tensor& whole) {
  communicate(ctx, kind, group, bytes_of(whole.shape(), whole.dtype()).count());
}

/// This rank's end, where there are numbers to send.
Communicator* wire(const Context& ctx, const RankGroup& group, const Tensor& tensor) {
  return group.size > 1 && ctx.kernels(tensor) && tensor.numel() ? ctx.device.compute().communicator : nullptr;
}

}  // namespace

void communicate(Context& ctx, Collective kind, const RankGroup& group, std::uint64_t bytes) {
  if (group.size == 1 || ctx.abandoned) return;
  ctx.device.work().collectives.push_back({kind, group, bytes});
}

void all_gather(Context& ctx, const RankGroup& group, const Tensor& out, const Tensor& in) {
  record(ctx, Collective::all_gather, group, out);
  if (group.size == 1) return copy_elements(ctx, out, in);
  if (Communicator* to = wire(ctx, group, out))
    to->all_gather(ctx.stream, group, out.data(), in.data(), in.numel(), in.dtype());
}

void reduce_scatter(Context& ctx, const RankGroup& group, const Tensor& out, const Tensor& in, ReduceOp op) {
  record(ctx, Collective::reduce_scatter, group, in);
  if (group.size == 1) return copy_elements(ctx, out, in);
  if (Communicator* to = wire(ctx, group, in))
    to->reduce_scatter(ctx.stream, group, out.data(), in.data(), out.numel(), in.dtype(), op);
}

void all_reduce(Context& ctx, const RankGroup& group, const Tensor& tensor, ReduceOp op) {
  record(ctx, Collective::all_reduce, group, tensor);
  if (Communicator* to = wire(ctx, group, tensor))
    to->all_reduce(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), op);
}

void reduce(Context& ctx, const RankGroup& group, const Tensor& tensor, ReduceOp op, std::int64_t root) {
  record(ctx, Collective::reduce, group, tensor);
  if (Communicator* to = wire(ctx, group, tensor))
    to->reduce(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), op, root);
}

void broadcast(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t root) {
  record(ctx, Collective::broadcast, group, tensor);
  if (Communicator* to = wire(ctx, group, tensor))
    to->broadcast(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), root);
}

void send(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t to) {
  record(ctx, Collective::send, group, tensor);
  if (Communicator* end = wire(ctx, group, tensor))
    end->send(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), to);
}

void recv(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t from) {
  record(ctx, Collective::recv, group, tensor);
  if (Communicator* end = wire(ctx, group, tensor))
    end->recv(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), from);
}

void copy_to_device(Context& ctx, std::uint64_t bytes) { ctx.device.work().host_to_device_bytes += bytes; }

void copy_to_host(Context& ctx, std::uint64_t bytes) { ctx.device.work().device_to_host_bytes += bytes; }

}  // namespace qlp

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

std::int64_t own_place(const Context& ctx, const RankGroup& group) {
  const Communicator* const end = ctx.device.compute().communicator;
  return end ? place_in(group, end->rank()) : 0;
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

void all_to_all(Context& ctx, const RankGroup& group, const Tensor& out, const Counts& from, const Tensor& in,
                const Counts& to) {
  record(ctx, Collective::all_to_all, group, in);
  // A rank that has nothing to send, or gets nothing, comes all the same.
  if (group.size > 1 && ctx.kernels(out))
    ctx.device.compute().communicator->all_to_all(ctx.stream, group, out.data(), from, in.data(), to, in.dtype());
}

void exchange(Context& ctx, const RankGroup& group, const Tensor& in, std::int64_t to, const Tensor& out,
              std::int64_t from) {
  if (Communicator* end = wire(ctx, group, in))
    end->exchange(ctx.stream, group, in.data(), to, out.data(), from, in.numel(), in.dtype());
}

void send(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t to) {
  if (Communicator* end = wire(ctx, group, tensor))
    end->send(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), to);
}

void recv(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t from) {
  if (Communicator* end = wire(ctx, group, tensor))
    end->recv(ctx.stream, group, tensor.data(), tensor.numel(), tensor.dtype(), from);
}

void copy_to_device(Context& ctx, std::uint64_t bytes) { ctx.device.work().host_to_device_bytes += bytes; }

void copy_to_host(Context& ctx, std::uint64_t bytes) { ctx.device.work().device_to_host_bytes += bytes; }

}  // namespace qlp

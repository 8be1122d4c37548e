#include "shard/fsdp2_collectives.h"

#include <utility>

#include "autograd/node.h"
#include "shard/fsdp2_copy.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// The dtype of a buffer for all parameters of a group, and its elements on one rank; bytes where dtypes are mixed.
struct FlatShard {
  DType dtype;
  std::int64_t numel;
};

FlatShard flat_shard(const std::vector<Fsdp2Param>& params) {
  const DType dtype = params.front().gathered_dtype();
  std::int64_t numel = 0, bytes = 0;
  bool uniform = true;
  for (const Fsdp2Param& param : params) {
    uniform = uniform && param.gathered_dtype() == dtype;
    numel += param.gather_source().numel();
    bytes += static_cast<std::int64_t>(bytes_of(param.gather_source().numel(), param.gathered_dtype()).count());
  }
  return uniform ? FlatShard{dtype, numel} : FlatShard{DType::uint8, bytes};
}

/// _get_param_all_gather_inputs: what is on the device is cast all at once, into one tensor; what comes from the host
/// one by one.
std::vector<Tensor> gather_inputs(Context& ctx, const std::vector<Fsdp2Param>& params) {
  std::vector<Tensor> inputs;
  std::int64_t numel = 0;
  DType dtype = DType::float32;
  for (const Fsdp2Param& param : params) {
    if (param.offloaded() || !param.param_dtype()) {
      inputs.push_back(param.gather_input(ctx));
      continue;
    }
    numel += param.gather_source().numel();
    dtype = *param.param_dtype();
  }
  if (numel) inputs.push_back(empty(ctx, {numel}, dtype, Op::mixed_precision_shard));
  return inputs;
}

}  // namespace

Tensor all_gather(Context& ctx, const std::vector<Fsdp2Param>& params, const RankGroup& group, StreamId stream) {
  const Scoped category(ctx.category, Category::communication_buffers);
  const Scoped copy_in(ctx.stream, stream);
  const std::vector<Tensor> inputs = gather_inputs(ctx, params);
  const FlatShard flat = flat_shard(params);
  Tensor gathered = empty(ctx, {flat.numel * group.size}, flat.dtype, Op::all_gather);
  communicate(ctx, Collective::all_gather, group, gathered);
  return gathered;
}

void copy_out(Context& ctx, std::vector<Fsdp2Param>& params, std::int64_t ranks) {
  std::vector<std::int64_t> split_bytes;
  for (Fsdp2Param& param : params) {
    param.allocate_unsharded(ctx);
    const std::int64_t numel = param.gather_source().numel();
    split_bytes.push_back(static_cast<std::int64_t>(bytes_of(numel, param.gathered_dtype()).count()));
  }
  const Scoped category(ctx.category, Category::workspace);
  scratch(ctx, split_copy_table_bytes(split_bytes, ranks, ctx.device.traits()), Op::all_gather);
}

void copy_shards(Context& ctx, std::vector<Fsdp2Param>& params) {
  Tensor cast;  // the shard in the dtype of computation stays until that of the next parameter is made
  for (Fsdp2Param& param : params) {
    {
      const Scoped category(ctx.category, Category::communication_buffers);
      cast = param.gather_input(ctx);
    }
    param.allocate_unsharded(ctx);
  }
}

Reduction reduce(Context& ctx, std::vector<UnshardedGrad> grads, const Fsdp2Options& options) {
  const Scoped category(ctx.category, Category::communication_buffers);
  Fsdp2Param& first = *grads.front().param;
  const DType dtype = first.reduce_dtype().value_or(grads.front().grad.dtype());
  std::int64_t numel = 0;
  std::vector<std::int64_t> chunk_bytes;
  for (const UnshardedGrad& unsharded : grads) {
    const std::int64_t chunk = unsharded.param->padded_numel();
    numel += chunk;
    chunk_bytes.push_back(static_cast<std::int64_t>(bytes_of(chunk, dtype).count()));
  }
  Reduction reduction{.reduce_scatter_input = empty(ctx, {numel * options.world_size}, dtype, Op::reduce_scatter)};
  scratch(ctx, chunk_cat_table_bytes(chunk_bytes), Op::cat);
  // A loop variable still holds the last gradient when the list of them is cleared.
  const Tensor last = grads.back().grad;
  for (UnshardedGrad& unsharded : grads) unsharded.grad.reset();

  const Scoped gradients(ctx.category, Category::gradients);
  Tensor output;
  {
    const Scoped stream(ctx.stream, kReduceScatterStream);
    output = empty(ctx, {numel}, dtype, Op::reduce_scatter);
    communicate(ctx, Collective::reduce_scatter, options.group(), reduction.reduce_scatter_input);
  }
  if (options.replicas > 1) {
    reduction.all_reduce_input = output;  // in place
    communicate(ctx, Collective::all_reduce, options.replicate_group(), output);
  }
  if (first.orig_dtype() != dtype) {
    const Scoped stream(ctx.stream, options.replicas > 1 ? kAllReduceStream : kReduceScatterStream);
    output = empty(ctx, {numel}, first.orig_dtype(), Op::to_copy);
  }
  std::int64_t start = 0;
  for (const UnshardedGrad& unsharded : grads) {
    const Tensor& sharded = unsharded.param->sharded();
    const bool accumulates = grad_of(sharded).defined();  // in place
    if (options.cpu_offload) copy_to_host(ctx, bytes_of(sharded.shape(), sharded.dtype()).count());
    const std::int64_t own = std::exchange(start, start + unsharded.param->padded_numel());
    if (accumulates) continue;
    if (options.cpu_offload) {
      const Scoped place(ctx.place, options.pin_memory ? Place::pinned : Place::host);
      set_grad(sharded, empty(ctx, sharded.shape(), sharded.dtype(), Op::to_copy));
    } else {
      set_grad(sharded, output.strided(sharded.shape(), sharded.strides(), own));
    }
  }
  return reduction;
}

}  // namespace qlp

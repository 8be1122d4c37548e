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
    numel += param.padded_numel();
    bytes += static_cast<std::int64_t>(bytes_of(param.padded_numel(), param.gathered_dtype()).count());
  }
  return uniform ? FlatShard{dtype, numel} : FlatShard{DType::uint8, bytes};
}

/// The cast of all shards whose gathering casts, in one tensor; none if no shard is cast.
Tensor cast_shards(Context& ctx, const std::vector<Fsdp2Param>& params) {
  std::int64_t numel = 0;
  DType dtype = DType::float32;
  for (const Fsdp2Param& param : params) {
    if (!param.param_dtype()) continue;
    numel += param.padded_numel();
    dtype = *param.param_dtype();
  }
  return numel ? empty(ctx, {numel}, dtype, Op::mixed_precision_shard) : Tensor();
}

}  // namespace

Tensor all_gather(Context& ctx, std::vector<Fsdp2Param>& params, const Fsdp2Options& options, StreamId stream) {
  const Scoped category(ctx.category, Category::communication_buffers);
  const Scoped copy_in(ctx.stream, stream);
  const Tensor cast = cast_shards(ctx, params);
  const FlatShard flat = flat_shard(params);
  Tensor gathered = empty(ctx, {flat.numel * options.world_size}, flat.dtype, Op::all_gather);
  communicate(ctx, Collective::all_gather, options.group(), gathered);
  return gathered;
}

void copy_out(Context& ctx, std::vector<Fsdp2Param>& params, const Fsdp2Options& options) {
  std::vector<std::int64_t> split_bytes;
  for (Fsdp2Param& param : params) {
    param.allocate_unsharded(ctx);
    split_bytes.push_back(static_cast<std::int64_t>(bytes_of(param.padded_numel(), param.gathered_dtype()).count()));
  }
  const Scoped category(ctx.category, Category::workspace);
  scratch(ctx, split_copy_table_bytes(split_bytes, options.world_size, ctx.device.traits()), Op::all_gather);
}

void copy_shards(Context& ctx, std::vector<Fsdp2Param>& params) {
  Tensor cast;  // the shard in the dtype of computation stays until that of the next parameter is made
  for (Fsdp2Param& param : params) {
    {
      const Scoped category(ctx.category, Category::communication_buffers);
      Tensor next;
      if (param.param_dtype()) next = empty(ctx, {param.padded_numel()}, *param.param_dtype(), Op::to_copy);
      cast = std::move(next);
    }
    param.allocate_unsharded(ctx);
  }
}

Tensor reduce_scatter(Context& ctx, std::vector<UnshardedGrad> grads, const Fsdp2Options& options) {
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
  Tensor input = empty(ctx, {numel * options.world_size}, dtype, Op::reduce_scatter);
  scratch(ctx, chunk_cat_table_bytes(chunk_bytes), Op::cat);
  // A loop variable still holds the last gradient when the list of them is cleared.
  const Tensor last = grads.back().grad;
  for (UnshardedGrad& unsharded : grads) unsharded.grad.reset();

  const Scoped stream(ctx.stream, kReduceScatterStream);
  const Scoped gradients(ctx.category, Category::gradients);
  Tensor output = empty(ctx, {numel}, dtype, Op::reduce_scatter);
  communicate(ctx, Collective::reduce_scatter, options.group(), input);
  if (first.orig_dtype() != dtype) output = empty(ctx, {numel}, first.orig_dtype(), Op::to_copy);
  for (const UnshardedGrad& unsharded : grads) {
    const Tensor& sharded = unsharded.param->sharded();
    if (grad_of(sharded).defined()) continue;  // added in place
    set_grad(sharded, output.strided(sharded.shape(), sharded.strides()));
  }
  return input;
}

}  // namespace qlp

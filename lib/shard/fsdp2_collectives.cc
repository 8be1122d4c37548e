#include "shard/fsdp2_collectives.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"
#include "shard/fsdp2_copy.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

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

/// `bytes` of dense memory seen as bytes, from `start` on.
Array as_bytes(const Tensor& tensor, std::int64_t start, std::int64_t bytes) {
  return {tensor.data() + start, DType::uint8, {bytes}, contiguous_strides({bytes})};
}

/// Puts what each parameter gives side by side at this rank's place of the gathered buffer (all_gather_copy_in).
/// `inputs` as gather_inputs() made them: those that are not cast together in order, the cast ones last.
Tensor copy_in(Context& ctx, const std::vector<Fsdp2Param>& params, const std::vector<Tensor>& inputs,
               const Tensor& gathered, const RankGroup& group) {
  const std::int64_t numel = gathered.numel() / group.size;
  Tensor own = gathered.flat(own_place(ctx, group) * numel, numel);
  Kernels& kernels = *ctx.kernels(gathered);
  std::size_t next = 0;
  std::int64_t at = 0, cast_at = 0;  // bytes of the buffer; elements of what is cast together
  for (const Fsdp2Param& param : params) {
    const std::int64_t elements = param.gather_source().numel();
    const auto bytes = static_cast<std::int64_t>(bytes_of(elements, param.gathered_dtype()).count());
    Tensor part;
    if (param.offloaded() || !param.param_dtype()) {
      part = inputs[next++];
    } else {
      part = inputs.back().flat(cast_at, elements);
      copy_elements(ctx, part, param.gather_source());
      cast_at += elements;
    }
    kernels.unary(ctx.stream, Unary::copy, as_bytes(own, at, bytes), as_bytes(part, 0, bytes), 0, 0);
    at += bytes;
  }
  return own;
}

}  // namespace

Tensor all_gather(Context& ctx, const std::vector<Fsdp2Param>& params, const RankGroup& group, StreamId stream) {
  const Scoped category(ctx.category, Category::communication_buffers);
  const Scoped on_stream(ctx.stream, stream);
  const std::vector<Tensor> inputs = gather_inputs(ctx, params);
  const FlatShard flat = flat_shard(params);
  Tensor gathered = empty(ctx, {flat.numel * group.size}, flat.dtype, Op::all_gather);
  const bool computes = ctx.kernels(gathered) && (group.size == 1 || ctx.device.compute().communicator);
  all_gather(ctx, group, gathered, computes ? copy_in(ctx, params, inputs, gathered, group) : gathered);
  return gathered;
}

void copy_out(Context& ctx, const Tensor& gathered, std::vector<Fsdp2Param>& params, std::int64_t ranks) {
  std::vector<std::int64_t> split_bytes;
  for (Fsdp2Param& param : params) {
    param.allocate_unsharded(ctx);
    const std::int64_t numel = param.gather_source().numel();
    split_bytes.push_back(static_cast<std::int64_t>(bytes_of(numel, param.gathered_dtype()).count()));
  }
  const Scoped category(ctx.category, Category::workspace);
  scratch(ctx, split_copy_table_bytes(split_bytes, ranks, ctx.device.traits()), Op::all_gather);
  Kernels* const kernels = ctx.kernels(gathered);
  if (!kernels) return;
  const auto row = static_cast<std::int64_t>(bytes_of(gathered.shape(), gathered.dtype()).count()) / ranks;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < params.size(); start += split_bytes[i++])
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      kernels->unary(ctx.stream, Unary::copy, as_bytes(params[i].gathered(), rank * split_bytes[i], split_bytes[i]),
                     as_bytes(gathered, rank * row + start, split_bytes[i]), 0, 0);
}

void copy_shards(Context& ctx, std::vector<Fsdp2Param>& params) {
  Tensor cast;  // the shard in the dtype of computation stays until that of the next parameter is made
  for (Fsdp2Param& param : params) {
    {
      const Scoped category(ctx.category, Category::communication_buffers);
      cast = param.gather_input(ctx);
    }
    param.allocate_unsharded(ctx);
    copy_elements(ctx, param.gathered(), cast);
  }
}

/// _chunk_cat: each gradient's part for each rank, side by side; what pads it is 0.
void chunk_cat(Context& ctx, const Tensor& out, const std::vector<UnshardedGrad>& grads, std::int64_t ranks) {
  if (!ctx.kernels(out)) return;
  fill(ctx, out, 0);
  const std::int64_t row = out.numel() / ranks;
  std::int64_t start = 0;
  for (const UnshardedGrad& unsharded : grads) {
    const Tensor& grad = unsharded.grad;
    const std::int64_t chunk = unsharded.param->padded_numel();
    const std::int64_t rows = grad.size(0), rows_of_chunk = rows ? chunk / (grad.numel() / rows) : 0;
    for (std::int64_t rank = 0; rank * rows_of_chunk < rows; ++rank) {
      const std::int64_t own = std::min(rows_of_chunk, rows - rank * rows_of_chunk);
      const Tensor part = grad.narrow(0, rank * rows_of_chunk, own);
      copy_elements(ctx, out.flat(rank * row + start, part.numel()), part);
    }
    start += chunk;
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
  chunk_cat(ctx, reduction.reduce_scatter_input, grads, options.world_size);
  wait_stream(ctx, kReduceScatterStream, ctx.stream);
  // A loop variable still holds the last gradient when the list of them is cleared.
  const Tensor last = grads.back().grad;
  for (UnshardedGrad& unsharded : grads) unsharded.grad.reset();

  const Scoped gradients(ctx.category, Category::gradients);
  Tensor output;
  {
    const Scoped stream(ctx.stream, kReduceScatterStream);
    output = empty(ctx, {numel}, dtype, Op::reduce_scatter);
    reduce_scatter(ctx, options.group(), output, reduction.reduce_scatter_input, ReduceOp::average);
  }
  const StreamId after = options.replicas > 1 ? kAllReduceStream : kReduceScatterStream;
  wait_stream(ctx, after, kReduceScatterStream);
  const Scoped on_stream(ctx.stream, after);
  if (options.replicas > 1) {
    reduction.all_reduce_input = output;  // in place
    all_reduce(ctx, options.replicate_group(), output, ReduceOp::average);
  }
  if (options.batches)
    compute(ctx, Unary::mul, output, output,
            static_cast<double>(options.world_size * options.replicas) / static_cast<double>(options.batches));
  if (first.orig_dtype() != dtype) {
    const Tensor cast = empty(ctx, {numel}, first.orig_dtype(), Op::to_copy);
    copy_into(ctx, cast, output);
    output = cast;
  }
  std::int64_t start = 0;
  for (const UnshardedGrad& unsharded : grads) {
    const Tensor& sharded = unsharded.param->sharded();
    const bool accumulates = grad_of(sharded).defined();  // in place
    if (options.cpu_offload) copy_to_host(ctx, bytes_of(sharded.shape(), sharded.dtype()).count());
    const std::int64_t own = std::exchange(start, start + unsharded.param->padded_numel());
    const Tensor mine = output.strided(sharded.shape(), sharded.strides(), own);
    if (accumulates) {
      compute(ctx, Binary::add, grad_of(sharded), grad_of(sharded), mine);
    } else if (options.cpu_offload) {
      const Scoped place(ctx.place, options.pin_memory ? Place::pinned : Place::host);
      const Tensor on_host = empty(ctx, sharded.shape(), sharded.dtype(), Op::to_copy);
      copy_into(ctx, on_host, mine);
      set_grad(sharded, on_host);
    } else {
      set_grad(sharded, mine);
    }
  }
  return reduction;
}

}  // namespace qlp

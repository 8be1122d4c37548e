// What FlatParamHandle does when a model is saved: _unshard_fsdp_state_params
// (torch/distributed/fsdp/_unshard_param_utils.py; FlatParamHandle.to_cpu; _shard_utils.py).
#include "shard/fsdp1_handle.h"
#include "shard/rows.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

void take(Context& ctx, const Tensor& tensor) {
  tensor.storage().resize(bytes_of(tensor.shape(), tensor.dtype()).count(), ctx.stream);
}

void drop(Context& ctx, const Tensor& tensor) {
  tensor.storage().record_stream(ctx.stream);
  tensor.storage().resize(0, ctx.stream);
}

}  // namespace

void FlatParamHandle::summon(Context& ctx, Summoned where) {
  const Tensor& whole = full_precision();
  if (mixed_precision()) full_.storage().resize(0, ctx.stream);
  drops_summoned_ = whole.storage().bytes() == 0;
  if (drops_summoned_) {
    const Tensor shard = to_device(ctx, local_shard_);  // an offloaded one comes for the time of the collective
    take(ctx, whole);
    all_gather(ctx, options_->group(), whole, shard);
  }
  summoned_ = where;
  if (where == Summoned::on_host) on_host_ = to_host(ctx, whole.flat(0, numel_));
  if (where == Summoned::on_host || (where == Summoned::nowhere && drops_summoned_)) drop(ctx, whole);
}

void FlatParamHandle::dismiss(Context& ctx) {
  if (summoned_ == Summoned::nowhere) return;
  if (summoned_ == Summoned::on_host) {
    take(ctx, full_precision());
    copy_to_device(ctx, bytes_of(on_host_.shape(), on_host_.dtype()).count());
    on_host_.reset();
  }
  if (drops_summoned_) drop(ctx, full_precision());
}

void FlatParamHandle::clone_parameters(Context& ctx, const Parameter* named_twice,
                                       std::vector<StateDictEntry>& out) const {
  const Scoped place(ctx.place, Place::host);
  const Scoped category(ctx.category, on_host_.storage().label().category);
  for (const Piece& piece : pieces_)
    for (int copies = !piece.parameter ? 0 : piece.parameter == named_twice ? 2 : 1; copies > 0; --copies) {
      out.push_back({piece.parameter, empty(ctx, piece.shape, original_dtype_, Op::clone)});
      copy_elements(ctx, out.back().tensor, on_host_.flat(piece.offset, piece.numel));
    }
}

/// ShardedTensor.cpu()
Tensor FlatParamHandle::taken_chunk(Context& ctx, const Tensor& chunk) const {
  return options_->chunks_stay ? chunk : to_host(ctx, chunk);
}

/// _create_chunk_sharded_tensor: torch.chunk along the first dimension.
Tensor FlatParamHandle::chunk(Context& ctx, const Tensor& whole) const {
  const Rows rows = rows_of(whole.size(0), options_->world_size, options_->rank);
  Tensor chunk = empty(ctx, whole.shape().with(0, rows.own), whole.dtype(), Op::clone);
  if (rows.own > 0) copy_into(ctx, chunk, whole.narrow(0, rows.padded * options_->rank, rows.own));
  return chunk;
}

void FlatParamHandle::chunk_parameters(Context& ctx, const Parameter* named_twice,
                                       std::vector<StateDictEntry>& out) const {
  const Scoped category(ctx.category, Category::workspace);
  for (const Piece& piece : pieces_)
    for (int copies = !piece.parameter ? 0 : piece.parameter == named_twice ? 2 : 1; copies > 0; --copies)
      out.push_back({piece.parameter,
                     taken_chunk(ctx, chunk(ctx, full_precision().flat(piece.offset, piece.numel).view(piece.shape)))});
}

}  // namespace qlp

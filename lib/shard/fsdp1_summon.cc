// What FlatParamHandle does when a model is saved: _unshard_fsdp_state_params with offload_to_cpu and rank0_only
// (torch/distributed/fsdp/_unshard_param_utils.py; FlatParamHandle.to_cpu).
#include "shard/fsdp1_handle.h"
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

void FlatParamHandle::summon(Context& ctx, bool keeps) {
  const Tensor& whole = full_precision();
  if (mixed_precision()) full_.storage().resize(0, ctx.stream);
  drops_summoned_ = whole.storage().bytes() == 0;
  if (drops_summoned_) {
    const Tensor shard = to_device(ctx, local_shard_);  // an offloaded one comes for the time of the collective
    take(ctx, whole);
    all_gather(ctx, options_->group(), whole, shard);
  }
  if (keeps) on_host_ = to_host(ctx, whole.flat(0, numel_));
  if (keeps || drops_summoned_) drop(ctx, whole);
}

void FlatParamHandle::dismiss(Context& ctx) {
  if (!on_host_.defined()) return;
  take(ctx, full_precision());
  copy_to_device(ctx, bytes_of(on_host_.shape(), on_host_.dtype()).count());
  on_host_.reset();
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

}  // namespace qlp

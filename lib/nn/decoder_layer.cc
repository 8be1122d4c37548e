#include "nn/decoder_layer.h"

#include <utility>

#include "autograd/pointwise.h"
#include "nn/causal_mask.h"

namespace qlp {

DecoderLayer::DecoderLayer(std::string name, NormPlacement placement, std::unique_ptr<SelfAttention> attention,
                           std::unique_ptr<FeedForward> mlp, BlockNorms norms)
    : Module(ModuleKind::decoder_layer, std::move(name)),
      placement_(placement),
      attention_(std::move(attention)),
      mlp_(std::move(mlp)),
      norms_(std::move(norms)) {
  add_child(*attention_), add_child(*mlp_);
  for (RmsNorm* norm :
       {norms_.input.get(), norms_.post_attention.get(), norms_.pre_feedforward.get(), norms_.post_feedforward.get()})
    if (norm) add_child(*norm);
}

Tensor DecoderLayer::forward(Context& ctx, const Tensor& input, const LayerInputs& inputs) {
  const bool norms_first = placement_ != NormPlacement::after;
  const bool norms_last = placement_ != NormPlacement::before;
  Tensor weights;  // Python's name for them lives as long as the layer runs
  Tensor residual = input;
  LayerMask window;
  LayerInputs narrowed;
  const bool narrows = inputs.narrows_mask && attention_->slides() && inputs.mask.defined();
  if (narrows) {
    window = narrow_to_window(ctx, inputs.mask, attention_->window());
    narrowed = inputs;
    narrowed.sliding_mask = window.mask;
  }
  Tensor hidden = norms_first ? norms_.input->forward(ctx, input) : input;
  hidden = attention_->forward(ctx, hidden, narrows ? narrowed : inputs, weights);
  if (norms_last) hidden = norms_.post_attention->forward(ctx, hidden);
  hidden = add(ctx, residual, hidden);

  residual = hidden;
  RmsNorm* before_mlp =
      placement_ == NormPlacement::before ? norms_.post_attention.get() : norms_.pre_feedforward.get();
  if (norms_first) hidden = before_mlp->forward(ctx, hidden);
  hidden = mlp_->forward(ctx, hidden);
  if (norms_last) hidden = norms_.post_feedforward->forward(ctx, hidden);
  hidden = add(ctx, residual, hidden);
  return hidden;
}

}  // namespace qlp

#include "nn/decoder_layer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/pointwise.h"
#include "nn/causal_mask.h"

namespace qlp {

DecoderLayer::DecoderLayer(std::string name, std::unique_ptr<SelfAttention> attention, std::unique_ptr<FeedForward> mlp,
                           BlockNorms norms, BlockSums sums)
    : Module(ModuleKind::decoder_layer, std::move(name)),
      attention_(std::move(attention)),
      mlp_(std::move(mlp)),
      norms_(std::move(norms)),
      sums_(sums) {
  add_child(*attention_), add_child(*mlp_);
  std::array<RmsNorm*, 4> all{norms_.before_attention.get(), norms_.after_attention.get(), norms_.before_mlp.get(),
                              norms_.after_mlp.get()};
  // The two that Llama has are registered first, whatever they do (Glm4DecoderLayer).
  std::stable_partition(all.begin(), all.end(), [](const RmsNorm* norm) {
    return norm && (norm->leaf_name() == "input_layernorm" || norm->leaf_name() == "post_attention_layernorm");
  });
  for (RmsNorm* norm : all)
    if (norm) add_child(*norm);
}

/// residual + hidden * scale
Tensor DecoderLayer::add_scaled(Context& ctx, const Tensor& residual, const Tensor& hidden) const {
  return add(ctx, residual, sums_.scale == 0 ? hidden : scale(ctx, hidden, sums_.scale));
}

Tensor DecoderLayer::forward(Context& ctx, const Tensor& input, const LayerInputs& inputs) {
  Tensor weights, routed;  // Python's names for them live as long as the layer runs
  Tensor residual = input;
  LayerMask window;
  LayerInputs narrowed;
  const bool narrows = inputs.narrows_mask && attention_->slides() && inputs.mask.defined();
  if (narrows) {
    window = narrow_to_window(ctx, inputs.mask, attention_->window());
    narrowed = inputs;
    narrowed.mask = window.mask;
  }
  Tensor hidden = norms_.before_attention ? norms_.before_attention->forward(ctx, input) : input;
  if (sums_.parallel) {
    const Tensor attended = attention_->forward(ctx, hidden, inputs, weights);
    const Tensor fed = mlp_->forward(ctx, hidden, routed);
    return add(ctx, add(ctx, residual, attended), fed);
  }
  hidden = attention_->forward(ctx, hidden, narrows ? narrowed : inputs, weights);
  if (norms_.after_attention) hidden = norms_.after_attention->forward(ctx, hidden);
  hidden = add_scaled(ctx, residual, hidden);

  residual = hidden;
  if (norms_.before_mlp) hidden = norms_.before_mlp->forward(ctx, hidden);
  hidden = mlp_->forward(ctx, hidden, routed);
  if (norms_.after_mlp) hidden = norms_.after_mlp->forward(ctx, hidden);
  hidden = add_scaled(ctx, residual, hidden);
  return hidden;
}

}  // namespace qlp

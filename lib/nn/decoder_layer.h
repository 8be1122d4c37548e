// One block of a decoder: attention and MLP around the residual stream.
#pragma once

#include <memory>

#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace qlp {

/// Those that a family has: before its attention and MLP (Llama), after them (OLMo 2), or both (Gemma 2).
struct BlockNorms {
  std::unique_ptr<RmsNorm> before_attention, after_attention, before_mlp, after_mlp;
};

/// How what attention and MLP give is added to the stream.
struct BlockSums {
  double scale = 0;       ///< it is multiplied by that first (Granite); 0: it is not
  bool parallel = false;  ///< both read the same, and are added at last (Cohere)
};

class DecoderLayer final : public Module {
 public:
  DecoderLayer(std::string name, std::unique_ptr<SelfAttention> attention, std::unique_ptr<FeedForward> mlp,
               BlockNorms norms, BlockSums sums);
  /// hidden [B, S, H], without the hooks of the layer.
  Tensor forward(Context& ctx, const Tensor& hidden, const LayerInputs& inputs);

  SelfAttention& attention() { return *attention_; }
  const SelfAttention& attention() const { return *attention_; }

 private:
  Tensor add_scaled(Context& ctx, const Tensor& residual, const Tensor& hidden) const;

  std::unique_ptr<SelfAttention> attention_;
  std::unique_ptr<FeedForward> mlp_;
  BlockNorms norms_;
  BlockSums sums_;
};

}  // namespace qlp

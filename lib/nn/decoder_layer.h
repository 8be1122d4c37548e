// One block of a decoder: attention and MLP around the residual stream.
#pragma once

#include <memory>

#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace qlp {

/// Where the norms of a block stand.
enum class NormPlacement : std::uint8_t {
  before,  ///< Llama: x + attention(norm(x))
  after,   ///< OLMo 2: x + norm(attention(x))
  around,  ///< Gemma 2: x + norm(attention(norm(x)))
};

struct BlockNorms {
  std::unique_ptr<RmsNorm> input, post_attention, pre_feedforward, post_feedforward;
};

class DecoderLayer final : public Module {
 public:
  DecoderLayer(std::string name, NormPlacement placement, std::unique_ptr<SelfAttention> attention,
               std::unique_ptr<FeedForward> mlp, BlockNorms norms);
  /// hidden [B, S, H], without the hooks of the layer.
  Tensor forward(Context& ctx, const Tensor& hidden, const LayerInputs& inputs);

  SelfAttention& attention() { return *attention_; }

 private:
  NormPlacement placement_;
  std::unique_ptr<SelfAttention> attention_;
  std::unique_ptr<FeedForward> mlp_;
  BlockNorms norms_;
};

}  // namespace qlp

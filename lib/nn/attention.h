// Self attention with grouped heads, as LlamaAttention and its relatives in transformers run it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rotary.h"

namespace qlp {

enum class AttentionKernel : std::uint8_t { sdpa, eager, flash_attention_2 };

/// What every layer of a forward pass gets beside the hidden states.
struct LayerInputs {
  RotaryTables rotary;
  Tensor positions;                          ///< cache_position and position_ids, kept by checkpointed layers
  Tensor mask;                               ///< [1, 1, S, S] or none: causal
  Tensor sliding_mask;                       ///< the same of layers with a sliding window
  std::vector<std::pair<Tensor, Tensor>>* cache = nullptr;  ///< keys and values by layer, if a cache is filled
};

struct AttentionShape {
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  AttentionKernel kernel = AttentionKernel::sdpa;
  bool sliding = false;       ///< this layer attends through a window
  bool softcap = false;       ///< Gemma 2: scores pass through tanh (eager only)
  double dropout = 0.0;
};

/// The projections of one layer; fused families leave out what they do not have.
struct AttentionProjections {
  std::unique_ptr<LinearModule> q, k, v, qkv, o;
  std::unique_ptr<RmsNorm> q_norm, k_norm;
  bool norm_per_head = false;  ///< Qwen3: norms over the head width, else over all heads (OLMo 2)
};

class SelfAttention final : public Module {
 public:
  SelfAttention(std::string name, const AttentionShape& shape, AttentionProjections projections,
                const ModelBehaviour& behaviour, std::size_t layer);
  /// hidden [B, S, H]
  Tensor forward(Context& ctx, const Tensor& hidden, const LayerInputs& inputs);
  AttentionProjections& projections() { return projections_; }

 private:
  struct Heads {
    Tensor q, k, v;  ///< [B, heads, S, D]
  };
  Heads project(Context& ctx, const Tensor& hidden);
  Tensor sdpa(Context& ctx, const Heads& heads, const Tensor& mask);
  Tensor eager(Context& ctx, const Heads& heads, const Tensor& mask);

  AttentionShape shape_;
  AttentionProjections projections_;
  ModelBehaviour behaviour_;
  std::size_t layer_;
};

}  // namespace qlp

// Self attention with grouped heads, as LlamaAttention and its relatives in transformers run it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autograd/ring_attention.h"
#include "nn/behaviour.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rotary.h"

namespace qlp {

enum class AttentionKernel : std::uint8_t { sdpa, eager, flash_attention_2 };

/// How q and k are normed.
enum class HeadNorm : std::uint8_t {
  none,
  each,          ///< over the width of a head, as soon as it is projected (Qwen3)
  each_at_last,  ///< the same, once q, k and v are there (Gemma 3)
  joined,        ///< over all heads (OLMo 2)
};

/// What a layer gets beside the hidden states.
struct LayerInputs {
  // Python drops them from the last to the first.
  RotaryTables rotary;
  RotaryTables other_rotary;  ///< of layers of the other kind, where all layers get both
  Tensor mask;                ///< [B, 1, S, S] or none: causal
  Tensor positions;           ///< cache_position and position_ids, kept by checkpointed layers
  Tensor cache_position;      ///< by itself, beside positions that the batch has (until transformers 4.57)
  Tensor num_items, labels;   ///< keyword arguments of the loss that travel along
  bool narrows_mask = false;  ///< layers with a window narrow the mask themselves
  std::vector<std::pair<Tensor, Tensor>>* cache = nullptr;  ///< keys and values by layer, if a cache is filled
};

struct AttentionShape {
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  AttentionKernel kernel = AttentionKernel::sdpa;
  bool turns = true;        ///< q and k know their positions (not in every layer of SmolLM3)
  bool sliding = false;     ///< this layer attends through a window
  std::int64_t window = 0;  ///< its width
  double softcap = 0;       ///< Gemma 2: scores pass through tanh, times this (eager only); 0: they do not
  double scale = 1;         ///< of scores
  bool sinks = false;       ///< each head has a score of its own for attending to nothing (eager only)
  Ring ring = {};           ///< ranks that share each sequence
};

/// The projections of one layer; fused families leave out what they do not have.
struct AttentionProjections {
  std::unique_ptr<LinearModule> q, k, v, qkv, o;
  std::unique_ptr<RmsNorm> q_norm, k_norm;
  std::unique_ptr<RotaryEmbedding> rotary;  ///< of its own: before transformers 4.48
  HeadNorm head_norm = HeadNorm::none;
};

class SelfAttention final : public Module {
 public:
  SelfAttention(std::string name, const AttentionShape& shape, AttentionProjections projections,
                const ModelBehaviour& behaviour, std::size_t layer);
  /// hidden [B, S, H]. `weights` are the probabilities that the eager kernel gives too.
  Tensor forward(Context& ctx, const Tensor& hidden, const LayerInputs& inputs, Tensor& weights);
  bool slides() const { return shape_.sliding; }
  std::int64_t window() const { return shape_.window; }
  std::size_t layer() const { return layer_; }  ///< its place in the model
  AttentionProjections& projections() { return projections_; }

 private:
  struct Heads {
    Tensor fused;    ///< of which they are parts, where one projection makes all
    Tensor v, k, q;  ///< [B, heads, S, D]; Python drops q first
  };
  Heads project(Context& ctx, const Tensor& hidden);
  Heads project_joined(Context& ctx, const Tensor& hidden);
  Heads project_normed(Context& ctx, const Tensor& hidden);
  Tensor heads_first(Context& ctx, Tensor x, std::int64_t heads, RmsNorm* norm) const;
  void rotate(Context& ctx, Heads& heads, const LayerInputs& inputs, RotaryTables& own);
  void repeat_heads(Context& ctx, Heads& heads) const;
  Tensor sdpa(Context& ctx, Heads& heads, const Tensor& mask);
  Tensor flash(Context& ctx, Heads& heads);
  Tensor eager(Context& ctx, Heads& heads, const Tensor& mask, Tensor& weights);

  Tensor with_sinks(Context& ctx, const Tensor& scores, Tensor& combined);

  AttentionShape shape_;
  Parameter* sinks_ = nullptr;  ///< [heads]
  AttentionProjections projections_;
  ModelBehaviour behaviour_;
  std::size_t layer_;
};

}  // namespace qlp

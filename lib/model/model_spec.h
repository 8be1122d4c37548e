// What a decoder-only language model is made of, in the field names of Hugging Face's config.json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "model/family.h"
#include "model/model_factors.h"
#include "nn/rope_scaling.h"

namespace qlp {

/// How the rotary tables are made; only the kinds that allocate differently are told apart.
enum class RopeKind : std::uint8_t { standard, longrope };

/// The experts of a mixture, in the words of config.json.
struct ExpertSpec {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t intermediate_size = 0;                ///< of one expert (moe_intermediate_size, where the file has that)
  bool norm_topk_prob = true;                        ///< the weights of a token's experts sum to one
  std::int64_t decoder_sparse_step = 1;              ///< every so many layers one has experts, the others a dense MLP
  std::vector<std::int64_t> mlp_only_layers;         ///< those of them that have a dense MLP all the same
  std::int64_t shared_expert_intermediate_size = 0;  ///< of an expert that all tokens go to (Qwen2-MoE); 0: none
  friend bool operator==(const ExpertSpec&, const ExpertSpec&) = default;

  bool in_layer(std::int64_t index) const {
    return (index + 1) % decoder_sparse_step == 0 && std::ranges::find(mlp_only_layers, index) == mlp_only_layers.end();
  }
};

struct ModelSpec {
  std::string name;  ///< for people: a catalogue name or the file's stem
  Family family = Family::llama;

  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;

  bool tie_word_embeddings = false;
  bool qkv_bias = false;        ///< biases on q, k, v (Qwen2 always; Llama with attention_bias)
  bool attention_bias = false;  ///< bias on o_proj too (Llama's attention_bias)
  bool mlp_bias = false;

  std::optional<ExpertSpec> experts;  ///< of the families with a mixture

  std::optional<std::int64_t> sliding_window;     ///< set where the family uses it and the file enables it
  std::int64_t first_sliding_layer = 0;           ///< Qwen's max_window_layers: those below it see everything
  std::int64_t sliding_window_pattern = 0;        ///< and of those from it on, the last of each so many; 0: none
  std::int64_t no_rope_layer_interval = 0;        ///< SmolLM3: one layer of so many knows no positions; 0: none
  std::optional<double> attn_logit_softcapping;   ///< Gemma 2
  std::optional<double> final_logit_softcapping;  ///< Gemma 2
  RopeKind rope = RopeKind::standard;
  std::optional<std::int64_t> original_max_position_embeddings;  ///< longrope switches tables past it
  double partial_rotary_factor = 1.0;
  // What changes no size, for runs that compute.
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  RopeScaling rope_scaling{};
  std::optional<double> query_pre_attn_scalar;  ///< Gemma 2 scales scores by one over its root; else the head's width
  ModelFactors factors{};
  std::optional<DType> checkpoint_dtype;  ///< `dtype` / `torch_dtype` of the file
  bool mxfp4_experts = false;             ///< the files hold them in MXFP4, from which they are dequantized
  bool stacked_experts = false;           ///< the files hold them as transformers 5 does, not one by one

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;

  bool slides(std::int64_t layer) const {
    if (!sliding_window || layer < first_sliding_layer) return false;
    return sliding_window_pattern == 0 || (layer - first_sliding_layer + 1) % sliding_window_pattern != 0;
  }
  bool knows_positions(std::int64_t layer) const {
    return no_rope_layer_interval == 0 || (layer + 1) % no_rope_layer_interval != 0;
  }
};

}  // namespace qlp

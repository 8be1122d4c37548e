// What the model classes of transformers put where a config.json says nothing, for the families that are planned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/model_spec.h"

namespace qlp {

/// Defaults of one configuration class. Source: transformers 4.57.1 and 5.24.0 (they agree),
/// models/<model_type>/configuration_<model_type>.py; which keys a class reads: modeling_<model_type>.py beside it.
struct FamilyRow {
  Family family;
  std::string_view model_type;
  std::string_view architecture;
  std::int64_t intermediate_size;
  std::int64_t vocab_size;
  std::int64_t max_position_embeddings;
  std::int64_t num_key_value_heads;  ///< 0: as many as query heads
  std::int64_t head_dim;             ///< 0: hidden_size / num_attention_heads
  bool tie_word_embeddings;
  bool reads_attention_bias;  ///< attention_bias puts biases on q, k, v and o
  bool reads_mlp_bias;
  std::int64_t sliding_window;  ///< 0: none
  std::string_view hidden_act;
};

inline constexpr std::array<FamilyRow, 9> kFamilies{{
    {Family::llama, "llama", "LlamaForCausalLM", 11008, 32000, 2048, 0, 0, false, true, true, 0, "silu"},
    {Family::mistral, "mistral", "MistralForCausalLM", 14336, 32000, 131072, 8, 0, false, false, false, 4096, "silu"},
    {Family::qwen2, "qwen2", "Qwen2ForCausalLM", 22016, 151936, 32768, 32, 0, false, false, false, 4096, "silu"},
    {Family::qwen3, "qwen3", "Qwen3ForCausalLM", 22016, 151936, 32768, 32, 128, false, true, false, 4096, "silu"},
    {Family::olmo2, "olmo2", "Olmo2ForCausalLM", 11008, 50304, 2048, 0, 0, false, true, false, 0, "silu"},
    {Family::phi3, "phi3", "Phi3ForCausalLM", 8192, 32064, 4096, 0, 0, false, false, false, 0, "silu"},
    {Family::gemma2, "gemma2", "Gemma2ForCausalLM", 9216, 256000, 8192, 4, 256, true, true, false, 4096,
     "gelu_pytorch_tanh"},
    {Family::mixtral, "mixtral", "MixtralForCausalLM", 14336, 32000, 131072, 8, 0, false, false, false, 0, "silu"},
    {Family::qwen3_moe, "qwen3_moe", "Qwen3MoeForCausalLM", 6144, 151936, 32768, 4, 0, false, true, false, 4096,
     "silu"},
}};

/// What a class with a mixture of experts has where a file says nothing.
struct ExpertDefaults {
  std::int64_t num_experts;
  std::int64_t num_experts_per_tok;
  std::int64_t moe_intermediate_size;  ///< 0: intermediate_size is that of an expert
  bool norm_topk_prob;
};

/// None for families without experts.
constexpr std::optional<ExpertDefaults> expert_defaults(Family family) {
  if (family == Family::mixtral) return ExpertDefaults{8, 2, 0, true};
  if (family == Family::qwen3_moe) return ExpertDefaults{128, 8, 768, false};
  return std::nullopt;
}

/// Qwen2Config and Qwen3Config: layers from this one on slide, where sliding is enabled.
inline constexpr std::int64_t kQwenMaxWindowLayers = 28;
/// Gemma2Config.
inline constexpr double kGemma2AttentionSoftcap = 50.0;
inline constexpr double kGemma2LogitSoftcap = 30.0;
/// Phi3Config.
inline constexpr std::int64_t kPhi3OriginalMaxPositions = 4096;

constexpr const FamilyRow& row_of(Family family) { return kFamilies[static_cast<std::size_t>(family)]; }

constexpr const FamilyRow* family_row(std::string_view model_type) {
  for (const auto& row : kFamilies)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

/// Why a model_type that is not in the table cannot be planned.
std::string_view why_not_supported(std::string_view model_type);

/// Bounds within which no count of parameters or bytes overflows.
struct ShapeLimits {
  static constexpr std::int64_t kHidden = 1'000'000;
  static constexpr std::int64_t kIntermediate = 10'000'000;
  static constexpr std::int64_t kLayers = 10'000;
  static constexpr std::int64_t kHeads = 4096;
  static constexpr std::int64_t kHeadDim = 4096;
  static constexpr std::int64_t kVocab = 100'000'000;
  static constexpr std::int64_t kPositions = 1'000'000'000;
  static constexpr std::int64_t kExperts = 4096;
};

}  // namespace qlp

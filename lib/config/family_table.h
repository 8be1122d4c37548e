// What the model classes of transformers put where a config.json says nothing, for the families that are planned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/model_spec.h"

namespace qlp {

/// Which of q, k, v and o have biases.
enum class AttentionBias : std::uint8_t {
  none,
  of_qkv,         ///< q, k and v always
  asked_for,      ///< all, where attention_bias is true
  asked_for_qkv,  ///< q, k and v, unless attention_bias is false
};

/// How a file says that layers attend through a window.
enum class WindowKind : std::uint8_t {
  none,
  all_layers,    ///< sliding_window, for every layer
  switched,      ///< use_sliding_window; layers below max_window_layers see everything
  switched_all,  ///< use_sliding_window, for every layer
  by_layer,      ///< sliding_window, for layers that layer_types or a pattern tell
};

/// Source: configuration_<model_type>.py, as below.
struct WindowDefaults {
  WindowKind kind = WindowKind::none;
  std::int64_t width = 0;    ///< 0: no window where the file has none
  std::int64_t pattern = 0;  ///< of each so many layers the last sees everything; 0: none does
};

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
  bool tie_word_embeddings = false;
  AttentionBias attention_bias = AttentionBias::none;
  bool reads_mlp_bias = false;
  WindowDefaults window = {};
  std::string_view hidden_act = "silu";
  double partial_rotary_factor = 0;         ///< 0: the class does not read it
  std::int64_t no_rope_layer_interval = 0;  ///< 0: the class does not read it
  bool peft_has_targets = false;            ///< q_proj and v_proj (peft 0.21.2, src/peft/utils/constants.py)

  bool reads_bias() const {
    return attention_bias == AttentionBias::asked_for || attention_bias == AttentionBias::asked_for_qkv;
  }
  bool bias_by_default() const { return attention_bias == AttentionBias::asked_for_qkv; }
};

inline constexpr std::string_view kGeluTanh = "gelu_pytorch_tanh";

inline constexpr auto kFamilies = std::to_array<FamilyRow>({
    {.family = Family::llama,
     .model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .intermediate_size = 11008,
     .vocab_size = 32000,
     .max_position_embeddings = 2048,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .attention_bias = AttentionBias::asked_for,
     .reads_mlp_bias = true,
     .peft_has_targets = true},
    {.family = Family::mistral,
     .model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .intermediate_size = 14336,
     .vocab_size = 32000,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 8,
     .head_dim = 0,
     .window = {WindowKind::all_layers, 4096},
     .peft_has_targets = true},
    {.family = Family::qwen2,
     .model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .intermediate_size = 22016,
     .vocab_size = 151936,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 32,
     .head_dim = 0,
     .attention_bias = AttentionBias::of_qkv,
     .window = {WindowKind::switched, 4096},
     .peft_has_targets = true},
    {.family = Family::qwen3,
     .model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .intermediate_size = 22016,
     .vocab_size = 151936,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 32,
     .head_dim = 128,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::switched, 4096},
     .peft_has_targets = true},
    {.family = Family::olmo2,
     .model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .intermediate_size = 11008,
     .vocab_size = 50304,
     .max_position_embeddings = 2048,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .attention_bias = AttentionBias::asked_for},
    {.family = Family::phi3,
     .model_type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .intermediate_size = 8192,
     .vocab_size = 32064,
     .max_position_embeddings = 4096,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .window = {WindowKind::all_layers},
     .partial_rotary_factor = 1},
    {.family = Family::gemma2,
     .model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .intermediate_size = 9216,
     .vocab_size = 256000,
     .max_position_embeddings = 8192,
     .num_key_value_heads = 4,
     .head_dim = 256,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::by_layer, 4096, 2},
     .hidden_act = kGeluTanh,
     .peft_has_targets = true},
    {.family = Family::mixtral,
     .model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .intermediate_size = 14336,
     .vocab_size = 32000,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 8,
     .head_dim = 0,
     .window = {WindowKind::all_layers},
     .peft_has_targets = true},
    {.family = Family::qwen3_moe,
     .model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .intermediate_size = 6144,
     .vocab_size = 151936,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 4,
     .head_dim = 0,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::switched_all, 4096}},
    {.family = Family::gemma3_text,
     .model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .intermediate_size = 9216,
     .vocab_size = 262208,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 4,
     .head_dim = 256,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::by_layer, 4096, 6},
     .hidden_act = kGeluTanh,
     .peft_has_targets = true},
    {.family = Family::granite,
     .model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .intermediate_size = 11008,
     .vocab_size = 32000,
     .max_position_embeddings = 2048,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .attention_bias = AttentionBias::asked_for,
     .reads_mlp_bias = true},
    {.family = Family::smollm3,
     .model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .intermediate_size = 11008,
     .vocab_size = 128256,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 4,
     .head_dim = 0,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for,
     .reads_mlp_bias = true,
     .no_rope_layer_interval = 4},
    {.family = Family::glm,
     .model_type = "glm",
     .architecture = "GlmForCausalLM",
     .intermediate_size = 13696,
     .vocab_size = 151552,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 2,
     .head_dim = 128,
     .attention_bias = AttentionBias::asked_for_qkv,
     .partial_rotary_factor = 0.5},
    {.family = Family::glm4,
     .model_type = "glm4",
     .architecture = "Glm4ForCausalLM",
     .intermediate_size = 13696,
     .vocab_size = 151552,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 2,
     .head_dim = 128,
     .attention_bias = AttentionBias::asked_for_qkv,
     .partial_rotary_factor = 0.5},
    {.family = Family::olmo3,
     .model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .intermediate_size = 11008,
     .vocab_size = 50304,
     .max_position_embeddings = 2048,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::by_layer, 4096, 4}},
    {.family = Family::ministral,
     .model_type = "ministral",
     .architecture = "MinistralForCausalLM",
     .intermediate_size = 14336,
     .vocab_size = 32000,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 8,
     .head_dim = 0,
     .window = {WindowKind::by_layer, 4096}},
    {.family = Family::gemma,
     .model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .intermediate_size = 24576,
     .vocab_size = 256000,
     .max_position_embeddings = 8192,
     .num_key_value_heads = 16,
     .head_dim = 256,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for,
     .hidden_act = kGeluTanh,
     .peft_has_targets = true},
    {.family = Family::cohere,
     .model_type = "cohere",
     .architecture = "CohereForCausalLM",
     .intermediate_size = 22528,
     .vocab_size = 256000,
     .max_position_embeddings = 8192,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for},
    {.family = Family::cohere2,
     .model_type = "cohere2",
     .architecture = "Cohere2ForCausalLM",
     .intermediate_size = 22528,
     .vocab_size = 256000,
     .max_position_embeddings = 8192,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .tie_word_embeddings = true,
     .attention_bias = AttentionBias::asked_for,
     .window = {WindowKind::by_layer, 4096, 4}},
});

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

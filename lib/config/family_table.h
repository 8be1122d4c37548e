// What the model classes of transformers put where a config.json says nothing, for the families that are planned.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/class_names.h"
#include "model/model_spec.h"

namespace qlp {

/// Which of q, k, v and o have biases.
enum class AttentionBias : std::uint8_t {
  none,
  of_qkv,          ///< q, k and v always
  asked_for,       ///< all, where attention_bias is true
  asked_for_qkv,   ///< q, k and v, unless attention_bias is false
  unless_refused,  ///< all, unless attention_bias is false
};

/// How a file says that layers attend through a window.
enum class WindowKind : std::uint8_t {
  none,
  all_layers,    ///< sliding_window, for every layer
  switched,      ///< use_sliding_window; layers below max_window_layers see everything
  switched_all,  ///< use_sliding_window, for every layer
  refused,       ///< use_sliding_window, which is not planned
  by_layer,      ///< sliding_window, for layers that layer_types or a pattern tell
};

/// Source: configuration_<model_type>.py, as below.
struct WindowDefaults {
  WindowKind kind = WindowKind::none;
  std::int64_t width = 0;    ///< 0: no window where the file has none
  std::int64_t pattern = 0;  ///< of each so many layers the last sees everything; 0: none does
};

/// What a class with a mixture of experts has where a file says nothing.
struct ExpertDefaults {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;            ///< 0: intermediate_size is that of an expert
  std::int64_t shared_expert_intermediate_size = 0;  ///< 0: none is shared
  bool norm_topk_prob = true;
  bool reads_norm_topk_prob = false;
  bool picks_layers = false;  ///< by decoder_sparse_step and mlp_only_layers
};

/// Defaults of one configuration class. Source: transformers 4.57.1 and 5.24.0 (they agree),
/// models/<model_type>/configuration_<model_type>.py; which keys a class reads: modeling_<model_type>.py beside it.
struct FamilyRow {
  Family family;
  std::string_view model_type;
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
  std::string_view norm_eps_key = "rms_norm_eps";
  double norm_eps = 1e-6;
  double rope_theta = 10000;         ///< of 5.24, where the two differ
  double query_pre_attn_scalar = 0;  ///< 0: the class does not read it
  std::optional<ExpertDefaults> experts = {};
  std::string_view bias_key = "attention_bias";
  bool peft_has_targets = false;  ///< q_proj and v_proj (peft 0.21.2, src/peft/utils/constants.py)

  std::string architecture() const { return class_name(family, "ForCausalLM"); }
  bool reads_bias() const { return attention_bias >= AttentionBias::asked_for; }
  bool bias_by_default() const { return attention_bias >= AttentionBias::asked_for_qkv; }
  /// The projection of the output has one where the others have.
  bool biases_output() const {
    return attention_bias == AttentionBias::asked_for || attention_bias == AttentionBias::unless_refused;
  }
};

/// Qwen2Config and Qwen3Config: layers from this one on slide, where sliding is enabled.
inline constexpr std::int64_t kQwenMaxWindowLayers = 28;
/// Gemma2Config.
inline constexpr double kGemma2AttentionSoftcap = 50.0;
inline constexpr double kGemma2LogitSoftcap = 30.0;
/// Phi3Config.
inline constexpr std::int64_t kPhi3OriginalMaxPositions = 4096;

inline constexpr std::string_view kGeluTanh = "gelu_pytorch_tanh";

/// In the order of Family.
std::span<const FamilyRow> family_rows();
const FamilyRow& row_of(Family family);
const FamilyRow* family_row(std::string_view model_type);

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

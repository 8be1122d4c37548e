#include "model/family_design.h"

namespace qlp {
namespace {

constexpr NormNames kAfter{.after_attention = "post_attention_layernorm", .after_mlp = "post_feedforward_layernorm"};
constexpr NormNames kAround{.before_attention = "input_layernorm",
                            .after_attention = "post_attention_layernorm",
                            .before_mlp = "pre_feedforward_layernorm",
                            .after_mlp = "post_feedforward_layernorm"};
constexpr NormNames kAroundGlm4{.before_attention = "input_layernorm",
                                .after_attention = "post_self_attn_layernorm",
                                .before_mlp = "post_attention_layernorm",
                                .after_mlp = "post_mlp_layernorm"};
constexpr ExpertNames kListedExperts{.block = "mlp", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"};

constexpr LigerDesign kLiger{.since = LigerDesign::Since::v0_6};
constexpr LigerDesign kLigerOf08{.since = LigerDesign::Since::v0_8};
constexpr LigerDesign kLigerNotPlanned{.since = LigerDesign::Since::v0_6, .planned = false};

constexpr DecoderHabits kGemmaDecoder{
    .caches_in_training = false, .returns_tuples = true, .masks_by_layer_type = true, .makes_every_mask = true};

constexpr FamilyDesign kLlama{.liger = kLiger, .looked_at = LookedAt::always};
constexpr FamilyDesign kMistral{.decoder = {.windowed_masks = true}, .liger = kLiger, .looked_at = LookedAt::always};
constexpr FamilyDesign kQwen2{.decoder = {.masks_by_layer_type = true}, .liger = kLiger, .looked_at = LookedAt::always};
constexpr FamilyDesign kQwen3{.head_norm = HeadNorm::each,
                              .decoder = {.masks_by_layer_type = true},
                              .liger = kLiger,
                              .looked_at = LookedAt::always};
constexpr FamilyDesign kOlmo2{.norms = kAfter,
                              .norm = NormKind::olmo2,
                              .head_norm = HeadNorm::joined,
                              .rotary_in_float = true,
                              .liger = kLiger,
                              .looked_at = LookedAt::always};
constexpr FamilyDesign kOlmo3{.norms = kAfter,
                              .norm = NormKind::olmo2,
                              .head_norm = HeadNorm::joined,
                              .rotary_in_float = true,
                              .rotary_by_layer_type = true,
                              .decoder = {.masks_by_layer_type = true, .makes_every_mask = true},
                              .liger = kLigerOf08};
constexpr FamilyDesign kPhi3{.joins_qkv = true,
                             .joins_gate_up = true,
                             .joins_rotary_rest = true,
                             .decoder = {.windowed_masks = true},
                             .liger = kLiger,
                             .looked_at = LookedAt::always};
constexpr FamilyDesign kGemma2{.norms = kAround,
                               .norm = NormKind::gemma,
                               .activation = Activation::gelu,
                               .embedding_scale = EmbeddingScale::after_rotary,
                               .decoder = kGemmaDecoder,
                               .liger = {.since = LigerDesign::Since::v0_6, .last_norm_apart = true},
                               .looked_at = LookedAt::always};
constexpr FamilyDesign kGemma3{
    .norms = kAround,
    .norm = NormKind::gemma,
    .head_norm = HeadNorm::each_at_last,
    .activation = Activation::gelu,
    .rotary_by_layer_type = true,
    .embedding_scale = EmbeddingScale::by_module,
    .decoder = kGemmaDecoder,
    .liger = {.since = LigerDesign::Since::v0_6, .last_norm_apart = true, .norms_heads = true}};
constexpr FamilyDesign kGranite{.embedding_scale = EmbeddingScale::at_once,
                                .scales_residual = true,
                                .scales_logits = true,
                                .decoder = {.returns_tuples = true},
                                .liger = kLigerNotPlanned,
                                .looked_at = LookedAt::always};
constexpr FamilyDesign kSmolLm3{.decoder = {.masks_by_layer_type = true}, .liger = kLiger};
constexpr FamilyDesign kGlm{.joins_gate_up = true,
                            .rotary_pairs = RotaryPairs::neighbours_of_halves,
                            .joins_rotary_rest = true,
                            .looked_at = LookedAt::from_4_48};
constexpr FamilyDesign kGlm4{.norms = kAroundGlm4,
                             .joins_gate_up = true,
                             .rotary_pairs = RotaryPairs::neighbours_of_halves,
                             .joins_rotary_rest = true,
                             .liger = kLigerNotPlanned};
constexpr FamilyDesign kGemma{.norm = NormKind::gemma,
                              .activation = Activation::gelu,
                              .embedding_scale = EmbeddingScale::after_rotary,
                              .liger = kLiger,
                              .looked_at = LookedAt::from_4_48};
constexpr NormNames kBeforeBoth{.before_attention = "input_layernorm"};
constexpr FamilyDesign kCohere{.norms = kBeforeBoth,
                               .norm = NormKind::cohere,
                               .rotary_pairs = RotaryPairs::neighbours,
                               .turns_in_float = true,
                               .parallel = true,
                               .scales_logits = true,
                               .looked_at = LookedAt::from_4_48};
constexpr FamilyDesign kCohere2{
    .norms = kBeforeBoth,
    .norm = NormKind::cohere,
    .rotary_pairs = RotaryPairs::neighbours,
    .turns_in_float = true,
    .turns_in_windows_only = true,
    .parallel = true,
    .scales_logits = true,
    .decoder = {.caches_in_training = false, .masks_by_layer_type = true, .makes_every_mask = true}};
constexpr FamilyDesign kMinistral{.decoder = {.masks_by_layer_type = true, .makes_every_mask = true},
                                  .liger = kLigerOf08};
constexpr FamilyDesign kMixtral{.decoder = {.windowed_masks = true},
                                .liger = kLigerNotPlanned,
                                .looked_at = LookedAt::always,
                                .experts = {.block = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"},
                                .router_first = true,
                                .leaf_under_zero3 = true};
/// Both keep the classes of transformers 4.47 until 5.0.
constexpr FamilyDesign kOlmoe{.head_norm = HeadNorm::joined,
                              .decoder = {.returns_tuples = true},
                              .experts = kListedExperts,
                              .router_first = true};
constexpr FamilyDesign kQwen2Moe{
    .decoder = {.returns_tuples = true,
                .masks_by_layer_type = true,
                .makes_every_mask = true,
                .windowed_masks = true,
                .masks_empty_window = true},
    .experts = {.block = "mlp", .gate = "gate_proj", .up = "up_proj", .down = "down_proj", .known_to_peft = false},
    .router_first = true,
    .leaf_under_zero3 = true};
constexpr FamilyDesign kGptOss{.norm = NormKind::olmo2,
                               .rotary_pairs = RotaryPairs::halves_by_half_tables,
                               .decoder = {.masks_by_layer_type = true, .makes_every_mask = true},
                               .liger = {.since = LigerDesign::Since::v0_8, .planned = false},
                               .experts = {.block = "mlp", .known_to_peft = false},
                               .router_first = true,
                               .biased_stacks = true,
                               .attention_sinks = true};
constexpr FamilyDesign kQwen3Moe{.head_norm = HeadNorm::each,
                                 .liger = kLigerNotPlanned,
                                 .looked_at = LookedAt::always,
                                 .experts = kListedExperts,
                                 .leaf_under_zero3 = true};

}  // namespace

const FamilyDesign& design_of(Family family) {
  switch (family) {
    case Family::llama:
      return kLlama;
    case Family::mistral:
      return kMistral;
    case Family::qwen2:
      return kQwen2;
    case Family::qwen3:
      return kQwen3;
    case Family::olmo2:
      return kOlmo2;
    case Family::phi3:
      return kPhi3;
    case Family::gemma2:
      return kGemma2;
    case Family::mixtral:
      return kMixtral;
    case Family::qwen3_moe:
      return kQwen3Moe;
    case Family::gemma3_text:
      return kGemma3;
    case Family::granite:
      return kGranite;
    case Family::smollm3:
      return kSmolLm3;
    case Family::glm:
      return kGlm;
    case Family::glm4:
      return kGlm4;
    case Family::olmo3:
      return kOlmo3;
    case Family::ministral:
      return kMinistral;
    case Family::gemma:
      return kGemma;
    case Family::cohere:
      return kCohere;
    case Family::cohere2:
      return kCohere2;
    case Family::olmoe:
      return kOlmoe;
    case Family::qwen2_moe:
      return kQwen2Moe;
    case Family::gpt_oss:
      return kGptOss;
  }
  return kLlama;
}

EmbeddingScale where_embedding_scales(Family family, bool by_itself) {
  const EmbeddingScale where = design_of(family).embedding_scale;
  return by_itself && where == EmbeddingScale::after_rotary ? EmbeddingScale::by_module : where;
}

RopeScaling rope_scaling_of(const ModelSpec& spec) {
  RopeScaling scaling = spec.rope_scaling;
  if (spec.rope != RopeKind::longrope) return scaling;
  scaling.rope_type = RopeStretch::longrope;
  scaling.original_max_position_embeddings = spec.original_max_position_embeddings;
  return scaling;
}

std::int64_t rotary_width(const ModelSpec& spec) {
  return static_cast<std::int64_t>(static_cast<double>(spec.head_dim) * spec.partial_rotary_factor);
}

std::int64_t rotary_tables(const ModelSpec& spec, bool always) {
  if (!design_of(spec.family).rotary_by_layer_type) return 1;
  if (always) return 2;
  bool full = false, sliding = false;
  for (std::int64_t layer = 0; layer < spec.num_hidden_layers; ++layer) (spec.slides(layer) ? sliding : full) = true;
  return full && sliding ? 2 : 1;
}

bool joins_heads_under_tp(Family family) {
  const FamilyDesign& design = design_of(family);
  return design.joins_qkv || design.head_norm == HeadNorm::joined;
}

}  // namespace qlp

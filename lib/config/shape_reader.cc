// Layer shapes spelled out in YAML, strictly.
#include <algorithm>
#include <array>

#include "config/family_table.h"
#include "config/model_numbers.h"
#include "config/model_reader.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

/// What read_family_extras reads: not unknown while the family is.
constexpr std::array<std::string_view, 17> kFamilyExtras{"attention_bias",         "mlp_bias",
                                                         "sliding_window",         "max_window_layers",
                                                         "attn_logit_softcapping", "final_logit_softcapping",
                                                         "partial_rotary_factor",  "num_experts",
                                                         "num_experts_per_tok",    "moe_intermediate_size",
                                                         "norm_topk_prob",         "decoder_sparse_step",
                                                         "sliding_window_pattern", "no_rope_layer_interval",
                                                         "mlp_only_layers",        "shared_expert_intermediate_size",
                                                         "mxfp4_experts"};

void read_heads(MapReader& map, const FamilyRow& row, ModelSpec& spec) {
  map.require("num_attention_heads", "the number of query heads");
  spec.num_attention_heads = map.integer("num_attention_heads", {1, ShapeLimits::kHeads}).value_or(0);
  spec.num_key_value_heads = map.integer_or("num_key_value_heads", {1, ShapeLimits::kHeads},
                                            std::max<std::int64_t>(1, spec.num_attention_heads));
  auto head_dim = row.head_dim;
  if (head_dim == 0 && spec.num_attention_heads > 0) head_dim = spec.hidden_size / spec.num_attention_heads;
  head_dim = std::max<std::int64_t>(1, head_dim);
  spec.head_dim = map.integer_or("head_dim", {1, ShapeLimits::kHeadDim}, head_dim);
  if (spec.num_attention_heads == 0 || spec.hidden_size == 0) return;
  if (!map.has("head_dim") && row.head_dim == 0 && spec.head_dim * spec.num_attention_heads != spec.hidden_size)
    map.refuse("num_attention_heads", "inconsistent-shapes",
               "hidden_size " + std::to_string(spec.hidden_size) + " is no multiple of " +
                   std::to_string(spec.num_attention_heads) + " heads: give head_dim");
  if (spec.num_attention_heads % spec.num_key_value_heads != 0)
    map.refuse("num_key_value_heads", "inconsistent-shapes",
               std::to_string(spec.num_attention_heads) + " query heads cannot share " +
                   std::to_string(spec.num_key_value_heads) + " key and value heads");
}

/// A softcap where Gemma 2 has one; null switches it off.
std::optional<double> softcap(MapReader& map, std::string_view key, double class_default) {
  const auto* node = map.take(key);
  if (node && node->kind == NodeKind::null) return std::nullopt;
  return map.number_or(key, {}, class_default);
}

void read_experts(MapReader& map, const FamilyRow& row, ModelSpec& spec) {
  const auto& defaults = row.experts;
  if (!defaults) return;
  ExpertSpec experts;
  experts.num_experts = map.integer_or("num_experts", {2, ShapeLimits::kExperts}, defaults->num_experts);
  experts.num_experts_per_tok =
      map.integer_or("num_experts_per_tok", {1, experts.num_experts}, defaults->num_experts_per_tok);
  experts.intermediate_size = spec.intermediate_size;
  experts.norm_topk_prob = defaults->norm_topk_prob;
  if (defaults->moe_intermediate_size)
    experts.intermediate_size =
        map.integer_or("moe_intermediate_size", {1, ShapeLimits::kIntermediate}, defaults->moe_intermediate_size);
  if (defaults->reads_norm_topk_prob)
    experts.norm_topk_prob = map.boolean_or("norm_topk_prob", defaults->norm_topk_prob);
  if (defaults->picks_layers) {
    experts.decoder_sparse_step = map.integer("decoder_sparse_step", {1, ShapeLimits::kLayers}).value_or(1);
    experts.mlp_only_layers =
        map.integers("mlp_only_layers", {0, ShapeLimits::kLayers}).value_or(std::vector<std::int64_t>{});
  }
  if (defaults->shared_expert_intermediate_size)
    experts.shared_expert_intermediate_size = map.integer_or(
        "shared_expert_intermediate_size", {1, ShapeLimits::kIntermediate}, defaults->shared_expert_intermediate_size);
  spec.experts = experts;
}

void read_window(MapReader& map, const FamilyRow& row, ModelSpec& spec) {
  const WindowKind kind = row.window.kind;
  if (kind == WindowKind::none || kind == WindowKind::refused) return;
  spec.sliding_window = map.integer("sliding_window", {1, ShapeLimits::kPositions});
  if (!spec.sliding_window) return;
  const bool by_layer = kind == WindowKind::by_layer;
  if (by_layer || kind == WindowKind::switched)
    spec.first_sliding_layer = map.integer_or("max_window_layers", {0, spec.num_hidden_layers - 1}, 0);
  if (by_layer)
    spec.sliding_window_pattern =
        map.integer_or("sliding_window_pattern", {0, ShapeLimits::kLayers}, row.window.pattern);
}

/// Keys that only some families have; anywhere else they are unknown.
void read_family_extras(MapReader& map, const FamilyRow& row, ModelSpec& spec) {
  const bool biased = row.reads_bias() && map.boolean("attention_bias").value_or(row.bias_by_default());
  spec.attention_bias = biased && row.biases_output();
  spec.qkv_bias = biased || row.attention_bias == AttentionBias::of_qkv;
  if (row.reads_mlp_bias) spec.mlp_bias = map.boolean("mlp_bias").value_or(false);
  read_experts(map, row, spec);
  read_window(map, row, spec);
  if (row.family == Family::gpt_oss) spec.mxfp4_experts = map.boolean("mxfp4_experts").value_or(false);
  if (row.family == Family::gemma2) {
    spec.attn_logit_softcapping = softcap(map, "attn_logit_softcapping", kGemma2AttentionSoftcap);
    spec.final_logit_softcapping = softcap(map, "final_logit_softcapping", kGemma2LogitSoftcap);
  }
  if (row.partial_rotary_factor != 0)
    spec.partial_rotary_factor = map.number("partial_rotary_factor", {0, 1}).value_or(row.partial_rotary_factor);
  if (row.no_rope_layer_interval != 0)
    spec.no_rope_layer_interval =
        map.integer_or("no_rope_layer_interval", {1, ShapeLimits::kLayers}, row.no_rope_layer_interval);
}

void read_rope(MapReader& map, ModelSpec& spec) {
  constexpr std::array<std::string_view, 2> kTypes{"default", "longrope"};
  if (map.word("rope_type", kTypes) != 1U) return;
  spec.rope = RopeKind::longrope;
  map.require("original_max_position_embeddings", "longrope switches tables past it");
  spec.original_max_position_embeddings = map.integer("original_max_position_embeddings", {1, ShapeLimits::kPositions});
}

}  // namespace

ModelSpec read_shapes(MapReader& map) {
  ModelSpec spec;
  map.require("family", "it decides which layers there are");
  const auto family = map.choice<Family>("family");
  spec.family = family.value_or(Family::llama);
  const auto& row = row_of(spec.family);
  spec.name = map.text("name").value_or(std::string(row.model_type) + " by shapes");

  map.require("hidden_size", "the width of the residual stream");
  spec.hidden_size = map.integer("hidden_size", {1, ShapeLimits::kHidden}).value_or(0);
  map.require("intermediate_size", "the width of the MLP");
  spec.intermediate_size = map.integer("intermediate_size", {1, ShapeLimits::kIntermediate}).value_or(0);
  map.require("num_hidden_layers", "the number of decoder layers");
  spec.num_hidden_layers = map.integer("num_hidden_layers", {1, ShapeLimits::kLayers}).value_or(1);
  map.require("vocab_size", "the rows of the embedding");
  spec.vocab_size = map.integer("vocab_size", {1, ShapeLimits::kVocab}).value_or(0);
  read_heads(map, row, spec);
  spec.max_position_embeddings =
      map.integer_or("max_position_embeddings", {1, ShapeLimits::kPositions}, row.max_position_embeddings);
  spec.tie_word_embeddings = map.boolean_or("tie_word_embeddings", row.tie_word_embeddings);
  if (family) {
    read_family_extras(map, row, spec);
  } else {
    for (auto key : kFamilyExtras) map.take(key);
  }
  read_rope(map, spec);
  read_model_numbers(map, spec);
  spec.checkpoint_dtype = map.dtype("torch_dtype", kFloatDTypes);
  return spec;
}

}  // namespace qlp

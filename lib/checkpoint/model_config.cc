#include "checkpoint/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "checkpoint/rope_json.h"
#include "config/family_table.h"
#include "config/json_parser.h"
#include "config/model_reader.h"
#include "model/family_design.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kLayerKeys{"num_hidden_layers", "n_layers", "n_layer", "num_layers"};
constexpr std::array<std::string_view, 2> kQuantizationKeys{"quantization_config", "compression_config"};
/// Where a model with several parts describes its language model.
constexpr std::array<std::string_view, 4> kTextKeys{"text_config", "llm_config", "language_config", "thinker_config"};

void set_windows(Json& out, const ModelSpec& spec) {
  const WindowKind kind = row_of(spec.family).window.kind;
  if (kind == WindowKind::none) return;
  if (kind == WindowKind::switched || kind == WindowKind::switched_all) {
    out["use_sliding_window"] = spec.sliding_window.has_value();
    out["max_window_layers"] = spec.sliding_window ? spec.first_sliding_layer : spec.num_hidden_layers;
  }
  if (kind == WindowKind::by_layer) {
    Json types = Json::array();
    for (std::int64_t layer = 0; layer < spec.num_hidden_layers; ++layer)
      types.push_back(spec.slides(layer) ? "sliding_attention" : "full_attention");
    out["layer_types"] = std::move(types);
  }
  out["sliding_window"] = spec.sliding_window ? Json(*spec.sliding_window) : Json(nullptr);
}

void set_rope(Json& out, const ModelSpec& spec) {
  if (row_of(spec.family).partial_rotary_factor != 0) out["partial_rotary_factor"] = spec.partial_rotary_factor;
  if (spec.no_rope_layer_interval) out["no_rope_layer_interval"] = spec.no_rope_layer_interval;
  if (spec.original_max_position_embeddings)
    out["original_max_position_embeddings"] = *spec.original_max_position_embeddings;
  const RopeScaling& s = spec.rope_scaling;
  if (spec.rope != RopeKind::longrope) {
    if (s.rope_type != RopeStretch::none) out["rope_scaling"] = rope_scaling_json(s);
    return;
  }
  const std::vector<double> ones(static_cast<std::size_t>(rotary_width(spec) / 2), 1.0);
  out["rope_scaling"] = {{"type", "longrope"},
                         {"short_factor", s.short_factor.empty() ? ones : s.short_factor},
                         {"long_factor", s.long_factor.empty() ? ones : s.long_factor}};
  if (s.attention_factor) out["rope_scaling"]["attention_factor"] = *s.attention_factor;
}

void set_experts(Json& out, const ModelSpec& spec) {
  if (!spec.experts) return;
  const ExpertSpec& e = *spec.experts;
  const bool local = spec.family == Family::mixtral || spec.family == Family::gpt_oss;
  out[local ? "num_local_experts" : "num_experts"] = e.num_experts;
  out["num_experts_per_tok"] = e.num_experts_per_tok;
  const ExpertDefaults& of_class = *row_of(spec.family).experts;
  if (of_class.moe_intermediate_size) out["moe_intermediate_size"] = e.intermediate_size;
  if (of_class.reads_norm_topk_prob) out["norm_topk_prob"] = e.norm_topk_prob;
  if (of_class.picks_layers)
    out["decoder_sparse_step"] = e.decoder_sparse_step, out["mlp_only_layers"] = e.mlp_only_layers;
  if (e.shared_expert_intermediate_size) out["shared_expert_intermediate_size"] = e.shared_expert_intermediate_size;
}

NodePtr parsed(const Json& json) { return *parse_json(json.dump(), "config.json"); }

NodePtr scalar(std::string text, bool quoted) {
  auto node = std::make_shared<TextNode>();
  node->kind = NodeKind::scalar, node->text = std::move(text), node->quoted = quoted;
  return node;
}

void set(TextNode& map, std::string_view key, NodePtr value) {
  const auto at = std::ranges::find(map.entries, key, &Entry::key);
  if (at != map.entries.end())
    at->value = std::move(value);
  else
    map.entries.push_back({std::string(key), {}, std::move(value)});
}

const TextNode* language_model(const TextNode& config) {
  for (const auto key : kTextKeys)
    if (const auto* part = find(config, key); part && part->kind == NodeKind::map) return part;
  return nullptr;
}

/// The key of the layer count of this map, with its value; none where there is none.
std::optional<std::pair<std::string_view, std::int64_t>> layer_count(const TextNode& map) {
  for (const auto key : kLayerKeys) {
    const auto* node = find(map, key);
    const auto count = node ? integer_of(*node) : Unexpected{std::string()};
    if (count) return std::pair{key, *count};
  }
  return std::nullopt;
}

NodePtr cut(const TextNode& map, std::int64_t had, std::int64_t layers) {
  auto out = std::make_shared<TextNode>(map);
  for (Entry& entry : out->entries) {
    const bool counts = std::ranges::find(kLayerKeys, entry.key) != kLayerKeys.end();
    if (counts && entry.value->kind == NodeKind::scalar) entry.value = scalar(std::to_string(layers), false);
    if (entry.value->kind != NodeKind::sequence || std::cmp_not_equal(entry.value->items.size(), had)) continue;
    auto list = std::make_shared<TextNode>(*entry.value);
    list->items.resize(static_cast<std::size_t>(layers));
    entry.value = std::move(list);
  }
  return out;
}

void write(const TextNode& node, const std::string& indent, std::string& out) {
  const std::string inner = indent + "  ";
  const char* separator = "";
  switch (node.kind) {
    case NodeKind::null:
      out += "null";
      break;
    case NodeKind::scalar:
      out += node.quoted ? Json(node.text).dump() : node.text;
      break;
    case NodeKind::sequence:
      out += "[";
      for (const auto& item : node.items) out += separator, write(*item, inner, out), separator = ", ";
      out += "]";
      break;
    case NodeKind::map:
      out += "{";
      for (const auto& [key, position, value] : node.entries) {
        out += separator + ("\n" + inner) + Json(key).dump() + ": ";
        write(*value, inner, out);
        separator = ",";
      }
      out += node.entries.empty() ? "}" : "\n" + indent + "}";
  }
}

}  // namespace

NodePtr config_of(const ModelSpec& spec) {
  const FamilyRow& row = row_of(spec.family);
  const auto in_vocabulary = [&](std::int64_t id) { return std::min(id, spec.vocab_size - 1); };
  Json out{{"architectures", {row.architecture()}},
           {"model_type", row.model_type},
           {"hidden_size", spec.hidden_size},
           {"intermediate_size", spec.intermediate_size},
           {"num_hidden_layers", spec.num_hidden_layers},
           {"num_attention_heads", spec.num_attention_heads},
           {"num_key_value_heads", spec.num_key_value_heads},
           {"head_dim", spec.head_dim},
           {"vocab_size", spec.vocab_size},
           {"max_position_embeddings", spec.max_position_embeddings},
           {"tie_word_embeddings", spec.tie_word_embeddings},
           {"hidden_act", row.hidden_act},
           {row.norm_eps_key, spec.rms_norm_eps},
           {"rope_theta", spec.rope_theta},
           {"pad_token_id", 0},
           {"bos_token_id", in_vocabulary(1)},
           {"eos_token_id", in_vocabulary(2)}};
  for (const auto& [key, member, of_class] : factors_of(spec.family)) out[key] = spec.factors.*member;
  if (row.query_pre_attn_scalar != 0) {
    const auto cap = [](std::optional<double> value) { return value ? Json(*value) : Json(nullptr); };
    out["hidden_activation"] = row.hidden_act;
    const double scalar = spec.query_pre_attn_scalar.value_or(static_cast<double>(spec.head_dim));
    const bool is_whole = scalar == std::floor(scalar);
    out["query_pre_attn_scalar"] = is_whole ? Json(static_cast<std::int64_t>(scalar)) : Json(scalar);
    out["attn_logit_softcapping"] = cap(spec.attn_logit_softcapping);
    out["final_logit_softcapping"] = cap(spec.final_logit_softcapping);
  }
  if (row.reads_bias()) out[row.bias_key] = spec.qkv_bias;
  if (row.reads_mlp_bias) out["mlp_bias"] = spec.mlp_bias;
  set_windows(out, spec);
  set_rope(out, spec);
  set_experts(out, spec);
  if (spec.mxfp4_experts) out["quantization_config"] = {{"quant_method", "mxfp4"}};
  if (spec.checkpoint_dtype) out["torch_dtype"] = name_of(*spec.checkpoint_dtype);
  return parsed(out);
}

Result<NodePtr> with_layers(const TextNode& config, std::int64_t layers) {
  const auto refuse = [](std::string code, std::string message, Position place) {
    return Unexpected{Diagnostics{{Severity::error, std::move(code), std::move(message), "", std::move(place), ""}}};
  };
  const TextNode* part = language_model(config);
  const auto count = layer_count(part ? *part : config);
  if (!count) return refuse("missing-key", "the config has no number of layers that could be cut", config.position);
  if (layers > count->second)
    return refuse("out-of-range",
                  "cannot cut " + std::to_string(count->second) + " layers to " + std::to_string(layers) +
                      ": expected at most " + std::to_string(count->second),
                  {"--layers", 0, 0});
  auto out = std::make_shared<TextNode>(config);
  if (!part) return cut(*out, count->second, layers);
  for (Entry& entry : out->entries)
    if (entry.value.get() == part) entry.value = cut(*part, count->second, layers);
  return NodePtr{std::move(out)};
}

NodePtr without_quantization(const TextNode& config) {
  auto out = std::make_shared<TextNode>(config);
  std::erase_if(out->entries, [](const Entry& entry) {
    return std::ranges::find(kQuantizationKeys, entry.key) != kQuantizationKeys.end();
  });
  return out;
}

Result<NodePtr> as_stored(const TextNode& config, DType dtype, const std::string& quantization) {
  auto out = std::make_shared<TextNode>(*without_quantization(config));
  std::erase_if(out->entries, [](const Entry& entry) { return entry.key == "auto_map" || entry.key == "dtype"; });
  set(*out, "torch_dtype", scalar(std::string(name_of(dtype)), true));
  if (quantization.empty()) return NodePtr{std::move(out)};
  auto block = parse_json(quantization, "quantization_config");
  if (!block) return Unexpected{std::move(block.error())};
  set(*out, kQuantizationKeys[0], std::move(*block));
  return NodePtr{std::move(out)};
}

const TextNode* quantization_of(const TextNode& config) {
  for (const auto key : kQuantizationKeys)
    if (const auto* block = find(config, key); block && block->kind == NodeKind::map) return block;
  return nullptr;
}

std::optional<std::int64_t> config_integer(const TextNode& config, std::string_view key) {
  const auto* node = find(config, key);
  if (node && node->kind == NodeKind::sequence) node = node->items.empty() ? nullptr : node->items.front().get();
  const auto value = node ? integer_of(*node) : Unexpected{std::string()};
  if (value) return *value;
  const TextNode* part = language_model(config);
  return part ? config_integer(*part, key) : std::nullopt;
}

std::string json_text(const TextNode& node) {
  std::string out;
  write(node, "", out);
  return out + "\n";
}

}  // namespace qlp

// config.json of Hugging Face. What a class of transformers reads from it, and what it ignores, is followed.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/checkpoint_check.h"
#include "config/checkpoint_quantization.h"
#include "config/config_fields.h"
#include "config/family_table.h"
#include "config/json_parser.h"
#include "config/model_numbers.h"
#include "config/model_reader.h"

namespace qlp {
namespace {

/// Names that the same field has in other files (vLLM's model_arch_config_convertor.py at 00bb6f5, and real files).
constexpr FieldNames kHidden{"hidden_size", "d_model", "n_embd"};
constexpr FieldNames kLayers{"num_hidden_layers", "n_layers", "n_layer", "num_layers"};
constexpr FieldNames kHeads{"num_attention_heads", "n_heads", "n_head"};
constexpr FieldNames kKeyValueHeads{"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num",
                                    "num_attention_groups"};
constexpr FieldNames kHeadDim{"head_dim", "attention_head_dim", "kv_channels", "hidden_size_per_head"};
constexpr FieldNames kIntermediate{"intermediate_size", "ffn_hidden_size", "n_inner"};
constexpr FieldNames kVocab{"vocab_size", "padded_vocab_size"};
constexpr FieldNames kPositions{"max_position_embeddings", "n_positions",        "max_seq_len", "seq_length",
                                "model_max_length",        "max_sequence_length"};
constexpr std::array<std::string_view, 6> kExpertKeys{"num_experts",     "num_local_experts", "n_routed_experts",
                                                      "moe_num_experts", "ffn_config",        "moe_layers"};

void refuse_model(const ConfigFields& fields, std::string_view key, const TextNode* at, const std::string& message) {
  fields.findings().error("unsupported-model", fields.place_of(key, at), message);
}

/// The row of the file's model_type, or of its architecture where it has none.
const FamilyRow* family_of(const ConfigFields& fields) {
  const auto* architectures = fields.find("architectures");
  const auto architecture = architectures && !architectures->items.empty() ? architectures->items.front()->text : "";
  const auto model_type = fields.text("model_type");
  const auto* row = model_type ? family_row(*model_type) : nullptr;
  if (!model_type) {
    const auto known = std::ranges::find(family_rows(), architecture, &FamilyRow::architecture);
    if (known != family_rows().end()) row = &*known;
  }
  if (!row && !model_type) {
    fields.findings().error("missing-key", fields.place_of("model_type", nullptr),
                            "model_type is missing, and architectures names no known family");
    return nullptr;
  }
  if (!row) {
    refuse_model(fields, "model_type", fields.find("model_type"),
                 *model_type + " is not supported: " + std::string(why_not_supported(*model_type)));
    return nullptr;
  }
  if (!architecture.empty() && architecture != row->architecture()) {
    refuse_model(fields, "architectures", architectures,
                 architecture + " is not supported: of the family " + std::string(row->model_type) + " only " +
                     row->architecture() + " is planned");
    return nullptr;
  }
  for (auto key : kExpertKeys) {
    const auto* node = fields.find(key);
    if (!node || node->text == "0" || node->text == "1" || row->experts) continue;
    refuse_model(fields, key, node,
                 "a mixture of experts in the family " + std::string(row->model_type) + " is not planned");
    return nullptr;
  }
  return row;
}

void read_heads(const ConfigFields& fields, const FamilyRow& row, ModelSpec& spec) {
  spec.num_attention_heads = fields.required(kHeads, ShapeLimits::kHeads);
  const bool as_queries =
      row.num_key_value_heads == 0 || fields.is_null(kKeyValueHeads[0]);  // null is not the class default
  const auto class_default = as_queries ? spec.num_attention_heads : row.num_key_value_heads;
  spec.num_key_value_heads = fields.integer_or(kKeyValueHeads, ShapeLimits::kHeads, class_default);

  const auto head_dim = fields.integer(kHeadDim, 0, ShapeLimits::kHeadDim).value_or(0);
  if (head_dim != 0) {
    spec.head_dim = head_dim;
  } else if (row.head_dim != 0 && !fields.is_null("head_dim") && !fields.find(kHeadDim)) {
    spec.head_dim = row.head_dim;
    fields.note_default("head_dim", std::to_string(row.head_dim));
  } else if (spec.num_attention_heads > 0) {
    spec.head_dim = spec.hidden_size / spec.num_attention_heads;
    if (spec.head_dim * spec.num_attention_heads != spec.hidden_size)
      fields.findings().error("inconsistent-shapes", fields.place_of("num_attention_heads", fields.find(kHeads)),
                              "hidden_size " + std::to_string(spec.hidden_size) + " is no multiple of " +
                                  std::to_string(spec.num_attention_heads) + " heads, and there is no head_dim");
  }
  if (spec.num_key_value_heads > 0 && spec.num_attention_heads % spec.num_key_value_heads != 0)
    fields.findings().error("inconsistent-shapes", fields.place_of("num_key_value_heads", fields.find(kKeyValueHeads)),
                            std::to_string(spec.num_attention_heads) + " query heads cannot share " +
                                std::to_string(spec.num_key_value_heads) + " key and value heads");
}

/// Layers with a dense MLP, as mlp_only_layers lists them.
std::vector<std::int64_t> read_dense_layers(const ConfigFields& fields) {
  const auto* dense = fields.find("mlp_only_layers");
  std::vector<std::int64_t> layers;
  for (std::size_t i = 0; dense && i < dense->items.size(); ++i) {
    const auto layer = integer_of(*dense->items[i]);
    if (layer && *layer >= 0)
      layers.push_back(*layer);
    else
      fields.findings().error("wrong-value", fields.place_of("mlp_only_layers", dense->items[i].get()),
                              "expected numbers of layers, from 0");
  }
  return layers;
}

/// Mixtures as configuration_<model_type>.py has them.
void read_experts(const ConfigFields& fields, const FamilyRow& row, ModelSpec& spec) {
  const auto& defaults = row.experts;
  if (!defaults) return;
  ExpertSpec experts;
  experts.num_experts =
      fields.integer_or({"num_local_experts", "num_experts"}, ShapeLimits::kExperts, defaults->num_experts);
  experts.num_experts_per_tok = fields.integer_or({"num_experts_per_tok", "experts_per_token"}, ShapeLimits::kExperts,
                                                  defaults->num_experts_per_tok);
  experts.intermediate_size = spec.intermediate_size;
  if (defaults->moe_intermediate_size)
    experts.intermediate_size =
        fields.integer_or({"moe_intermediate_size"}, ShapeLimits::kIntermediate, defaults->moe_intermediate_size);
  experts.norm_topk_prob = defaults->reads_norm_topk_prob
                               ? fields.boolean_or("norm_topk_prob", defaults->norm_topk_prob, true)
                               : defaults->norm_topk_prob;
  if (defaults->picks_layers) {
    experts.decoder_sparse_step = fields.integer({"decoder_sparse_step"}, 1, ShapeLimits::kLayers).value_or(1);
    experts.mlp_only_layers = read_dense_layers(fields);
  }
  if (defaults->shared_expert_intermediate_size)
    experts.shared_expert_intermediate_size = fields.integer_or(
        {"shared_expert_intermediate_size"}, ShapeLimits::kIntermediate, defaults->shared_expert_intermediate_size);
  if (experts.num_experts_per_tok > experts.num_experts)
    fields.findings().error("inconsistent-shapes",
                            fields.place_of("num_experts_per_tok", fields.find("num_experts_per_tok")),
                            "a token cannot go to " + std::to_string(experts.num_experts_per_tok) + " of " +
                                std::to_string(experts.num_experts) + " experts");
  if (fields.boolean_or("output_router_logits", false))
    fields.findings().error("not-supported",
                            fields.place_of("output_router_logits", fields.find("output_router_logits")),
                            "not supported: the routers' own loss");
  if (fields.number("router_jitter_noise").value_or(0) != 0)
    fields.findings().error("not-supported", fields.place_of("router_jitter_noise", fields.find("router_jitter_noise")),
                            "not supported: noise on what the routers read");
  spec.experts = experts;
}

/// `layer_types` says layer by layer who slides. What is not told by a first layer and a pattern is not planned.
void read_layer_types(const ConfigFields& fields, const TextNode& types, ModelSpec& spec) {
  const auto known = [](const NodePtr& type) {
    return type->text == "sliding_attention" || type->text == "full_attention";
  };
  const std::size_t layers = types.items.size();
  if (static_cast<std::int64_t>(layers) < spec.num_hidden_layers || !std::ranges::all_of(types.items, known)) {
    fields.findings().error("wrong-value", fields.place_of("layer_types", &types),
                            "expected a list of full_attention or sliding_attention for each of " +
                                std::to_string(spec.num_hidden_layers) + " layers");
    return;
  }
  const auto slides = [&](std::size_t i) { return types.items[i]->text == "sliding_attention"; };
  std::size_t first = 0;
  while (first < layers && !slides(first)) ++first;
  std::size_t full = first;
  while (full < layers && slides(full)) ++full;
  spec.first_sliding_layer = static_cast<std::int64_t>(first);
  spec.sliding_window_pattern = full == layers ? 0 : static_cast<std::int64_t>(full - first + 1);
  for (std::size_t i = first; i < layers; ++i) {
    if (slides(i) == spec.slides(static_cast<std::int64_t>(i))) continue;
    fields.findings().error("not-supported", fields.place_of("layer_types", types.items[i].get()),
                            "not supported: sliding and full layers that follow no pattern");
    return;
  }
}

/// Qwen: full attention up to max_window_layers, sliding from there on.
void read_max_window_layers(const ConfigFields& fields, ModelSpec& spec) {
  spec.first_sliding_layer =
      fields.integer({"max_window_layers"}, 0, ShapeLimits::kPositions).value_or(kQwenMaxWindowLayers);
  if (!fields.find("max_window_layers")) fields.note_default("max_window_layers", std::to_string(kQwenMaxWindowLayers));
}

void read_window(const ConfigFields& fields, const FamilyRow& row, ModelSpec& spec) {
  const WindowKind kind = row.window.kind;
  const bool switched = kind == WindowKind::switched || kind == WindowKind::switched_all;
  if (kind == WindowKind::refused && fields.boolean_or("use_sliding_window", false))
    fields.findings().error("not-supported", fields.place_of("use_sliding_window", fields.find("use_sliding_window")),
                            "not supported: sliding windows in the family " + std::string(row.model_type));
  if (kind == WindowKind::none || kind == WindowKind::refused || fields.is_null("sliding_window")) return;
  if (switched && !fields.boolean_or("use_sliding_window", false)) return;
  spec.sliding_window = fields.integer({"sliding_window"}, 1, ShapeLimits::kPositions);
  if (!fields.find("sliding_window")) {
    if (row.window.width == 0) return;
    spec.sliding_window = row.window.width;
    fields.note_default("sliding_window", std::to_string(row.window.width));
  }
  const bool has_types = kind == WindowKind::switched || kind == WindowKind::by_layer;
  const auto* types = has_types ? fields.find("layer_types") : nullptr;
  if (types) {
    read_layer_types(fields, *types, spec);
  } else if (kind == WindowKind::switched) {
    read_max_window_layers(fields, spec);
  } else if (row.window.pattern) {
    spec.sliding_window_pattern =
        row.family == Family::gemma3_text || row.family == Family::cohere2
            ? fields.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, ShapeLimits::kLayers)
                  .value_or(row.window.pattern)
            : row.window.pattern;
  }
  if (spec.first_sliding_layer < spec.num_hidden_layers && spec.sliding_window_pattern != 1) return;
  spec.sliding_window.reset();
  spec.first_sliding_layer = spec.sliding_window_pattern = 0;
}

/// SmolLM3: layers whose queries and keys are not turned; no_rope_layers is 1 for those that are.
void read_no_rope(const ConfigFields& fields, const FamilyRow& row, ModelSpec& spec) {
  if (row.no_rope_layer_interval == 0) return;
  spec.no_rope_layer_interval =
      fields.integer({"no_rope_layer_interval"}, 1, ShapeLimits::kLayers).value_or(row.no_rope_layer_interval);
  const auto* turned = fields.find("no_rope_layers");
  for (std::size_t i = 0; turned && i < turned->items.size(); ++i) {
    if ((turned->items[i]->text == "1") == spec.knows_positions(static_cast<std::int64_t>(i))) continue;
    fields.findings().error("not-supported", fields.place_of("no_rope_layers", turned->items[i].get()),
                            "not supported: layers without positions that no_rope_layer_interval does not tell");
    return;
  }
}

/// transformers 5 writes rope_parameters, 4 rope_scaling; the type is `rope_type` or, in old files, `type`.
void read_rope(const ConfigFields& fields, const FamilyRow& row, ModelSpec& spec) {
  const auto* rope = fields.find(FieldNames{"rope_parameters", "rope_scaling"});
  if (rope && rope->kind != NodeKind::map) rope = nullptr;
  const ConfigFields inner(rope ? *rope : fields.config(), fields.findings());
  if (rope) {
    const auto type = inner.text("rope_type").value_or(inner.text("type").value_or("default"));
    // Phi3Config reads the old words su and yarn as longrope (configuration_phi3.py).
    const bool old_word = row.family == Family::phi3 && (type == "su" || type == "yarn");
    if (type == "longrope" || old_word) spec.rope = RopeKind::longrope;
  }
  if (spec.rope == RopeKind::longrope) {
    const FieldNames original{"original_max_position_embeddings"};
    auto positions = fields.integer(original, 1, ShapeLimits::kPositions);
    if (!positions) positions = inner.integer(original, 1, ShapeLimits::kPositions);
    if (!positions && row.family == Family::phi3) {
      positions = kPhi3OriginalMaxPositions;
      fields.note_default(original[0], std::to_string(kPhi3OriginalMaxPositions));
    }
    spec.original_max_position_embeddings = positions;
  }
  if (row.partial_rotary_factor == 0) return;
  auto factor = fields.number("partial_rotary_factor");
  if (!factor && rope) factor = inner.number("partial_rotary_factor");
  spec.partial_rotary_factor = factor.value_or(row.partial_rotary_factor);
  if (spec.partial_rotary_factor > 0 && spec.partial_rotary_factor <= 1) return;
  fields.findings().error("out-of-range",
                          fields.place_of("partial_rotary_factor", fields.find("partial_rotary_factor")),
                          "out of range: expected more than 0, at most 1");
  spec.partial_rotary_factor = row.partial_rotary_factor;
}

void read_softcaps(const ConfigFields& fields, ModelSpec& spec) {
  const auto cap = [&](std::string_view key, double class_default) -> std::optional<double> {
    if (fields.is_null(key)) return std::nullopt;
    if (!fields.find(key)) fields.note_default(key, std::to_string(static_cast<int>(class_default)));
    return fields.number(key).value_or(class_default);
  };
  spec.attn_logit_softcapping = cap("attn_logit_softcapping", kGemma2AttentionSoftcap);
  spec.final_logit_softcapping = cap("final_logit_softcapping", kGemma2LogitSoftcap);
}

/// Gemma 3 has the keys of Gemma 2 and none of its caps.
void refuse_softcaps(const ConfigFields& fields) {
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (const auto* cap = fields.find(key))
      fields.findings().error("not-supported", fields.place_of(key, cap),
                              "not supported: caps in the family gemma3_text, whose models have none");
}

/// `dtype` is the word of transformers 5, `torch_dtype` that of 4.
std::optional<DType> read_dtype(const ConfigFields& fields) {
  const FieldNames names{"dtype", "torch_dtype"};
  const auto* node = fields.find(names);
  if (!node) return std::nullopt;
  const auto dtype = dtype_from_name(node->text);
  if (!dtype || !is_floating(*dtype)) {
    fields.findings().warning("unknown-dtype", fields.place_of("dtype", node),
                              describe(*node) + " is no dtype that weights are trained in: passed over");
    return std::nullopt;
  }
  const auto* other = fields.find("torch_dtype");
  if (other && dtype_from_name(other->text) != dtype)
    fields.findings().warning(
        "aliases-disagree", fields.place_of("torch_dtype", other),
        "torch_dtype is " + other->text + ", but dtype is " + node->text + ": the latter is used");
  return dtype;
}

/// What the file asks for beyond memory's usual course; planned as if it were not there, and said so.
void warn_of_unplanned(const ConfigFields& fields, const FamilyRow& row) {
  const auto* act = fields.find(FieldNames{"hidden_activation", "hidden_act"});
  if (act && act->text != row.hidden_act && !(row.hidden_act == kGeluTanh && act->text == "gelu"))
    fields.findings().warning("activation", fields.place_of("hidden_act", act),
                              act->text + " is planned as " + std::string(row.hidden_act));
  for (const std::string_view key : {"attention_dropout", "resid_pdrop", "embd_pdrop"}) {
    const auto dropout = fields.number(key);
    if (dropout && *dropout != 0)
      fields.findings().warning("dropout", fields.place_of(key, fields.find(key)),
                                std::string(key) + " is not planned: masks that it keeps are left out");
  }
}

std::string name_of_model(const std::string& path) {
  const std::filesystem::path p(path);
  if (p.filename() == "config.json" && p.has_parent_path() && !p.parent_path().filename().empty())
    return p.parent_path().filename().string();
  return p.stem().string();
}

}  // namespace

NodePtr overlaid(const TextNode& base, const TextNode& changes) {
  auto result = std::make_shared<TextNode>(base);
  for (const auto& change : changes.entries) {
    std::erase_if(result->entries, [&](const Entry& e) { return e.key == change.key; });
    result->entries.push_back(change);
  }
  return result;
}

Result<ModelDocument> model_from_config(const TextNode& config, const std::string& name) {
  Findings findings;
  const ConfigFields fields(config, findings);
  if (config.kind != NodeKind::map)
    findings.error("wrong-type", {"", config.position}, "expected a map of keys and values, found " + describe(config));
  if (findings.has_errors()) return Unexpected{findings.take_wrong()};
  const auto* row = family_of(fields);
  ModelDocument document;
  const bool dequantizes = row && row->family == Family::gpt_oss && is_mxfp4(fields);
  if (!dequantizes) document.quantization = checkpoint_quantization(fields);
  if (!row) return Unexpected{findings.take_wrong()};

  auto& spec = document.model;
  spec.name = name;
  spec.family = row->family;
  spec.hidden_size = fields.required(kHidden, ShapeLimits::kHidden);
  spec.num_hidden_layers = fields.required(kLayers, ShapeLimits::kLayers);
  read_heads(fields, *row, spec);
  spec.intermediate_size = fields.integer_or(kIntermediate, ShapeLimits::kIntermediate, row->intermediate_size);
  spec.vocab_size = fields.integer_or(kVocab, ShapeLimits::kVocab, row->vocab_size);
  spec.max_position_embeddings = fields.integer_or(kPositions, ShapeLimits::kPositions, row->max_position_embeddings);
  spec.tie_word_embeddings = fields.boolean_or("tie_word_embeddings", row->tie_word_embeddings, true);
  const bool biased = row->reads_bias() && fields.boolean_or(row->bias_key, row->bias_by_default());
  spec.attention_bias = biased && row->biases_output();
  spec.qkv_bias = biased || row->attention_bias == AttentionBias::of_qkv;
  spec.mlp_bias = row->reads_mlp_bias && fields.boolean_or("mlp_bias", false);
  read_experts(fields, *row, spec);
  spec.mxfp4_experts = dequantizes;
  if (dequantizes)
    findings.note("mxfp4", fields.place_of("quantization_config", fields.find("quantization_config")),
                  "weights in MXFP4 cannot be trained: they are taken to be dequantized to model.dtype while they are "
                  "read (Mxfp4Config(dequantize=True))");
  read_window(fields, *row, spec);
  read_no_rope(fields, *row, spec);
  read_rope(fields, *row, spec);
  if (row->family == Family::gemma2) read_softcaps(fields, spec);
  if (row->family == Family::gemma3_text) refuse_softcaps(fields);
  if (row->family == Family::cohere && fields.boolean_or("use_qk_norm", false))
    fields.findings().error("not-supported", fields.place_of("use_qk_norm", fields.find("use_qk_norm")),
                            "not supported: norms of queries and keys in the family cohere");
  if (row->family == Family::olmoe && fields.number("clip_qkv"))
    fields.findings().error("not-supported", fields.place_of("clip_qkv", fields.find("clip_qkv")),
                            "not supported: queries, keys and values that are clipped");
  read_model_numbers(fields, spec);
  spec.checkpoint_dtype = read_dtype(fields);
  warn_of_unplanned(fields, *row);

  if (findings.has_errors()) return Unexpected{findings.take_wrong()};
  document.notes = findings.take();
  return document;
}

Result<ModelDocument> read_model_config(const std::string& path, const FileReader& files, const TextNode* overrides) {
  const bool directory = files.kind_of(path) == FileReader::Kind::directory;
  const auto file = directory ? (std::filesystem::path(path) / "config.json").lexically_normal().string() : path;
  const auto text = read_text(file, files);
  if (!text) return Unexpected{text.error()};
  auto config = parse_json(*text, file);
  if (!config) return Unexpected{std::move(config.error())};
  if (overrides) config = overlaid(**config, *overrides);
  auto document = model_from_config(**config, name_of_model(file));
  if (document && directory && !overrides) {
    auto found = check_checkpoint(path, document->model,
                                  document->quantization.has_value() || document->model.mxfp4_experts, files);
    document->notes.insert(document->notes.end(), found.begin(), found.end());
  }
  return document;
}

}  // namespace qlp

#include <algorithm>
#include <array>

#include "config/family_table.h"
#include "config/job_sections.h"
#include "config/job_tree.h"
#include "config/named_file.h"
#include "model/target_matching.h"

namespace qlp {
namespace {

constexpr std::array<DType, 3> kFloats{DType::float32, DType::float16, DType::bfloat16};
constexpr std::array<DType, 6> kStorage{DType::uint8,   DType::int8,    DType::bfloat16,
                                        DType::float16, DType::float32, DType::float64};
constexpr std::int64_t kLargestRank = 65536;

constexpr std::array<NotSupported, 5> kOtherQuantTypes{{
    {"fp8", "8-bit float weights are not planned yet"},
    {"int4", "only the types of bitsandbytes are planned yet"},
    {"gptq", "its weights are buffers, which FSDP cannot shard; not planned yet"},
    {"awq", "its weights are buffers, which FSDP cannot shard; not planned yet"},
    {"mxfp4", "it cannot be trained as it is stored"},
}};

constexpr std::array<NotSupported, 2> kOtherBiases{{
    {"all", "trained biases are not planned yet"},
    {"lora_only", "trained biases are not planned yet"},
}};

/// Keys of LoraConfig that change what is trained (peft 0.20, src/peft/tuners/lora/config.py).
constexpr std::array<NotSupported, 9> kOtherLoraKeys{{
    {"layers_to_transform", "adapters on some layers only are not planned yet"},
    {"layers_pattern", "adapters on some layers only are not planned yet"},
    {"exclude_modules", "not planned yet; list target_modules without them"},
    {"target_parameters", "adapters on bare parameters are not planned yet"},
    {"trainable_token_indices", "training single tokens is not planned yet"},
    {"layer_replication", "it changes the number of layers; not planned yet"},
    {"lora_bias", "not planned yet"},
    {"ensure_weight_tying", "not planned yet"},
    {"alpha_pattern", "it changes no memory: leave it out"},
}};

bool is_all_linear(std::string text) {
  for (auto& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text == "all-linear";
}

void read_targets(MapReader& map, std::optional<Family> family, AdapterSpec& spec) {
  const auto* node = map.take("target_modules");
  if (node && node->kind == NodeKind::scalar) {
    const auto text = map.text("target_modules").value_or("");
    spec.all_linear = is_all_linear(text);
    if (!spec.all_linear) spec.target_pattern = text;
    if (const auto error = error_in_pattern(spec.target_pattern))
      map.refuse("target_modules", "bad-pattern", "not a regular expression that is supported: " + *error);
  } else if (node) {
    spec.target_modules = map.words("target_modules").value_or(std::vector<std::string>{});
    if (node->kind == NodeKind::sequence && node->items.empty())
      map.refuse("target_modules", "bad-value", "an empty list: name at least one module");
  } else if (family && !row_of(*family).peft_has_targets) {
    map.refuse("target_modules", "no-default-targets",
               "target_modules is missing, and PEFT has no default for " + std::string(name_of(*family)),
               "all-linear adapts every linear layer");
  } else {
    spec.target_modules = {"q_proj", "v_proj"};
    map.default_used("target_modules", "[q_proj, v_proj], as PEFT's table for this model");
  }
}

void read_rank_pattern(MapReader& map, AdapterSpec& spec) {
  const auto* node = map.take("rank_pattern");
  if (!node) return;
  MapReader ranks(node, map.place_of("rank_pattern"), map.findings());
  for (const auto& entry : node->entries) {
    ranks.take(entry.key);
    if (const auto error = error_in_pattern(entry.key))
      ranks.refuse(entry.key, "bad-pattern", "not a regular expression that is supported: " + *error, {});
    else if (const auto r = ranks.integer(entry.key, {1, kLargestRank}))
      spec.rank_pattern[entry.key] = *r;
  }
  ranks.finish();
}

/// Keys that PEFT's file shares with a job, and those of it that change no memory (peft 0.21, tuners/lora/config.py).
constexpr auto kSharedKeys =
    std::to_array<std::string_view>({"r", "lora_alpha", "lora_dropout", "use_dora", "use_rslora", "bias",
                                     "target_modules", "modules_to_save", "rank_pattern"});
constexpr auto kLoraWithoutMemory = std::to_array<std::string_view>(
    {"alpha_pattern", "auto_mapping", "base_model_name_or_path", "fan_in_fan_out", "inference_mode",
     "init_lora_weights", "loftq_config", "revision", "task_type", "megatron_config", "megatron_core", "eva_config",
     "corda_config", "peft_version", "qalora_group_size", "use_qalora", "arrow_config", "alora_invocation_tokens"});

/// The adapter_config.json that the section names, as a section.
NodePtr read_adapter_file(const Section& where, const FileReader& files, Findings& findings) {
  const auto path = path_beside(where.node->position.file, where.node->text);
  const NodePtr read = read_map(path, where.place, files, findings);
  if (!read) return nullptr;
  const NodePtr root = without_nulls(*read);
  MapReader map(root.get(), {"adapter", root->position}, findings);
  constexpr std::array<std::string_view, 1> kTypes{"LORA"};
  map.require("peft_type", "an adapter_config.json of PEFT says LORA");
  map.word("peft_type", kTypes);
  std::vector<Entry> entries{{"type", root->position, scalar("lora", root->position)}};
  for (const Entry& entry : root->entries)
    if (std::ranges::find(kSharedKeys, entry.key) != kSharedKeys.end()) map.take(entry.key), entries.push_back(entry);
  map.finish_foreign(kLoraWithoutMemory, kOtherLoraKeys);
  return map_of(std::move(entries), root->position);
}

}  // namespace

std::optional<QuantizationSpec> read_quantization_section(const Section& where, DType load_dtype, Findings& findings) {
  if (!where.node || where.node->kind == NodeKind::null) return std::nullopt;
  MapReader map(where.node, where.place, findings);
  QuantizationSpec spec;
  spec.quant_type = map.choice_or("quant_type", QuantType::nf4, kOtherQuantTypes);
  if (spec.eight_bit()) {
    for (const std::string_view key : {"double_quant", "quant_storage", "compute_dtype"})
      map.forbid(key, "it is an option of 4-bit weights", "leave it out");
    spec.quant_storage = DType::int8, spec.compute_dtype = load_dtype;
    spec.llm_int8_threshold = map.number_or("llm_int8_threshold", {0, 1e6}, spec.llm_int8_threshold);
  } else {
    spec.double_quant = map.boolean_or("double_quant", false);
    spec.quant_storage = map.dtype_or("quant_storage", kStorage, DType::uint8);
    spec.compute_dtype = map.dtype_or("compute_dtype", kFloats, load_dtype);
    map.forbid("llm_int8_threshold", "it is an option of quant_type int8", "leave it out");
  }
  spec.prepare_kbit = map.boolean_or("prepare_kbit", false);
  spec.trl_bf16_cast = map.boolean_or("trl_bf16_cast", false);
  if (spec.trl_bf16_cast && !spec.prepare_kbit)
    map.refuse("trl_bf16_cast", "bad-value", "trl_bf16_cast without prepare_kbit: there is nothing to cast back",
               "set prepare_kbit to true, as TRL's SFTTrainer does");
  map.finish();
  return spec;
}

std::optional<AdapterSpec> read_adapter_section(const Section& section, std::optional<Family> family,
                                                const FileReader& files, Findings& findings) {
  if (!section.node || section.node->kind == NodeKind::null) return std::nullopt;
  const bool is_file = section.node->kind == NodeKind::scalar && !section.node->text.empty();
  const NodePtr file = is_file ? read_adapter_file(section, files, findings) : nullptr;
  if (is_file && !file) return std::nullopt;
  const Section where{file ? file.get() : section.node, section.place};
  constexpr std::array<std::string_view, 1> kTypes{"lora"};
  constexpr std::array<NotSupported, 5> kOtherTypes{{
      {"qlora", "it is lora with a quantization section"},
      {"dora", "it is lora with use_dora: true"},
      {"adalora", "not planned yet"},
      {"loha", "not planned yet"},
      {"vera", "not planned yet"},
  }};
  constexpr std::array<std::string_view, 1> kBiases{"none"};
  MapReader map(where.node, where.place, findings);
  AdapterSpec spec;
  map.word("type", kTypes, kOtherTypes);
  spec.r = map.integer_or("r", {1, kLargestRank}, 8);
  spec.lora_alpha = map.number_or("lora_alpha", {}, 8);
  spec.lora_dropout = map.number_or("lora_dropout", {0, 1}, 0);
  spec.use_dora = map.boolean_or("use_dora", false);
  spec.use_rslora = map.boolean_or("use_rslora", false);
  read_targets(map, family, spec);
  spec.modules_to_save = map.words("modules_to_save").value_or(std::vector<std::string>{});
  read_rank_pattern(map, spec);
  map.word("bias", kBiases, kOtherBiases);
  spec.autocast_adapter_dtype = map.boolean_or("autocast_adapter_dtype", true);
  spec.dtype = map.dtype("dtype", kFloats);
  map.finish(kOtherLoraKeys);
  return spec;
}

}  // namespace qlp

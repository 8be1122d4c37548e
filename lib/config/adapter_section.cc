#include <algorithm>
#include <array>
#include <limits>

#include "config/family_table.h"
#include "config/job_sections.h"
#include "config/job_tree.h"
#include "config/named_file.h"
#include "model/target_matching.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

constexpr std::int64_t kLargestRank = 65536, kMostLayers = 65536;

/// Ways to start that decompose weights on the GPU, or run data through the model, before training (peft 0.21,
/// src/peft/tuners/lora/layer.py).
constexpr const char* kDecomposes = "it decomposes weights on the GPU, and what cuSOLVER takes for that is not known";
constexpr const char* kNeedsData = "it runs data through the model first, which is not planned yet";
constexpr std::array<NotSupported, 8> kOtherInitialWeights{{
    {"pissa", kDecomposes},
    {"olora", kDecomposes},
    {"mica", kDecomposes},
    {"milora", kDecomposes},
    {"eva", kNeedsData},
    {"corda", kNeedsData},
    {"lora_ga", kNeedsData},
    {"loftq", "it quantizes weights that are loaded in full, which is not planned yet"},
}};

/// Keys of LoraConfig that change what is trained (peft 0.21, src/peft/tuners/lora/config.py).
constexpr std::array<NotSupported, 10> kOtherLoraKeys{{
    {"layer_replication", "it changes the number of layers; not planned yet"},
    {"ensure_weight_tying", "not planned yet"},
    {"use_qalora", "not planned yet"},
    {"use_bdlora", "not planned yet"},
    {"alora_invocation_tokens", "not planned yet"},
    {"arrow_config", "not planned yet"},
    {"monteclora_config", "not planned yet"},
    {"velora_config", "not planned yet"},
    {"kasa_config", "not planned yet"},
    {"megatron_config", "not planned yet"},
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
    for (std::string& name : spec.target_modules)
      if (is_all_linear(name)) name = "all-linear", spec.all_linear = true;
    if (node->kind == NodeKind::sequence && node->items.empty() && spec.target_parameters.empty())
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

void read_patterns(MapReader& map, AdapterSpec& spec) {
  const auto each = [&](std::string_view key, const auto& read) {
    const auto* node = map.take(key);
    if (!node) return;
    MapReader values(node, map.place_of(key), map.findings());
    for (const auto& entry : node->entries) {
      values.take(entry.key);
      if (const auto error = error_in_pattern(entry.key))
        values.refuse(entry.key, "bad-pattern", "not a regular expression that is supported: " + *error, {});
      else
        read(values, entry.key);
    }
    values.finish();
  };
  each("rank_pattern", [&](MapReader& ranks, const std::string& pattern) {
    if (const auto r = ranks.integer(pattern, {1, kLargestRank})) spec.rank_pattern.emplace_back(pattern, *r);
  });
  each("alpha_pattern", [&](MapReader& alphas, const std::string& pattern) {
    if (const auto alpha = alphas.number(pattern, {})) spec.alpha_pattern.emplace_back(pattern, *alpha);
  });
}

/// Modules that are left out, and layers that are not.
void read_limits(MapReader& map, AdapterSpec& spec) {
  const auto* excluded = map.take("exclude_modules");
  if (excluded && excluded->kind == NodeKind::scalar) {
    spec.exclude_pattern = map.text("exclude_modules").value_or("");
    if (const auto error = error_in_pattern(spec.exclude_pattern))
      map.refuse("exclude_modules", "bad-pattern", "not a regular expression that is supported: " + *error);
  } else if (excluded) {
    spec.exclude_modules = map.words("exclude_modules").value_or(std::vector<std::string>{});
  }
  spec.layers_to_transform =
      map.integers("layers_to_transform", {0, kMostLayers}).value_or(std::vector<std::int64_t>{});
  spec.layers_pattern = map.word_or_words("layers_pattern").value_or(std::vector<std::string>{});
  for (const std::string& pattern : spec.layers_pattern)
    if (const auto error = error_in_pattern(pattern))
      map.refuse("layers_pattern", "bad-pattern", "not a regular expression that is supported: " + *error);
  const bool one_text = spec.target_modules.empty() && (spec.all_linear || !spec.target_pattern.empty());
  for (const std::string_view key : {"layers_to_transform", "layers_pattern"})
    if (one_text && map.has(key))
      map.refuse(key, "bad-value", "PEFT: '" + std::string(key) + "' cannot be used when 'target_modules' is a str",
                 "list the modules, or leave out " + std::string(key));
  if (map.has("layers_pattern") && !map.has("layers_to_transform"))
    map.refuse("layers_pattern", "bad-value",
               "PEFT: when 'layers_pattern' is specified, 'layers_to_transform' must also be specified",
               "give the numbers of layers too");
}

/// A list of token numbers is for the embedding; a map names it.
void read_tokens(MapReader& map, AdapterSpec& spec) {
  constexpr IntegerRange kTokens{0, std::numeric_limits<std::int32_t>::max()};
  const auto* node = map.take("trainable_token_indices");
  if (!node) return;
  if (node->kind != NodeKind::map) {
    spec.trainable_token_indices =
        map.integers("trainable_token_indices", kTokens).value_or(std::vector<std::int64_t>{});
    return;
  }
  MapReader tables(node, map.place_of("trainable_token_indices"), map.findings());
  spec.trainable_token_indices = tables.integers("embed_tokens", kTokens).value_or(std::vector<std::int64_t>{});
  constexpr std::array<NotSupported, 1> kOtherTables{{{"lm_head", "tokens of the embedding alone are planned"}}};
  tables.finish(kOtherTables);
}

/// None of them changes memory: adapters start on the host.
void read_initial_weights(MapReader& map) {
  constexpr std::array<std::string_view, 4> kKinds{"true", "false", "gaussian", "orthogonal"};
  if (const auto* node = map.take("init_lora_weights"); node && node->text.starts_with("pissa_niter"))
    map.refuse("init_lora_weights", "not-supported", node->text + " is not supported: " + kDecomposes);
  else
    map.word("init_lora_weights", kKinds, kOtherInitialWeights);
}

/// Keys that PEFT's file shares with a job, and those of it that change no memory (peft 0.21, tuners/lora/config.py).
constexpr auto kSharedKeys = std::to_array<std::string_view>(
    {"r", "lora_alpha", "lora_dropout", "use_dora", "use_rslora", "bias", "lora_bias", "target_modules",
     "exclude_modules", "layers_to_transform", "layers_pattern", "target_parameters", "modules_to_save",
     "trainable_token_indices", "rank_pattern", "alpha_pattern", "init_lora_weights"});
constexpr auto kLoraWithoutMemory = std::to_array<std::string_view>(
    {"auto_mapping", "base_model_name_or_path", "fan_in_fan_out", "inference_mode", "loftq_config", "revision",
     "task_type", "megatron_core", "eva_config", "corda_config", "lora_ga_config", "peft_version", "peft_type",
     "qalora_group_size"});

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
  const auto* targets = map.take("target_modules");
  if (targets && std::ranges::any_of(targets->items, [](const NodePtr& name) { return is_all_linear(name->text); }))
    map.refuse("target_modules", "bad-value",
               "PEFT looks for a module that is called all-linear, as it stands in a list: it means all linear layers "
               "as one text alone",
               "\"target_modules\": \"all-linear\", or the names of the layers");
  map.finish_foreign(kLoraWithoutMemory, kOtherLoraKeys);
  return map_of(std::move(entries), root->position);
}

}  // namespace

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
  MapReader map(where.node, where.place, findings);
  AdapterSpec spec;
  map.word("type", kTypes, kOtherTypes);
  spec.r = map.integer_or("r", {1, kLargestRank}, 8);
  spec.lora_alpha = map.number_or("lora_alpha", {}, 8);
  spec.lora_dropout = map.number_or("lora_dropout", {0, 1}, 0);
  spec.use_dora = map.boolean_or("use_dora", false);
  spec.use_rslora = map.boolean_or("use_rslora", false);
  spec.target_parameters = map.word_or_words("target_parameters").value_or(std::vector<std::string>{});
  read_targets(map, family, spec);
  read_limits(map, spec);
  spec.modules_to_save = map.words("modules_to_save").value_or(std::vector<std::string>{});
  read_tokens(map, spec);
  read_patterns(map, spec);
  spec.bias = map.choice_or("bias", AdapterBias::none);
  spec.lora_bias = map.boolean_or("lora_bias", false);
  if (spec.lora_bias && spec.use_dora)
    map.refuse("lora_bias", "bad-value", "PEFT: lora_bias=True is not supported for DoRA", "use_dora: false");
  read_initial_weights(map);
  spec.autocast_adapter_dtype = map.boolean_or("autocast_adapter_dtype", true);
  spec.dtype = map.dtype("dtype", kFloatDTypes);
  map.finish(kOtherLoraKeys);
  return spec;
}

}  // namespace qlp

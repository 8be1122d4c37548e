#include "config/trainer_keys.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "config/launch_file.h"
#include "config/named_file.h"

namespace qlp {

namespace {

constexpr auto kTrainerWithoutMemory = std::to_array<std::string_view>({"output_dir",
                                                                        "overwrite_output_dir",
                                                                        "do_train",
                                                                        "do_eval",
                                                                        "do_predict",
                                                                        "learning_rate",
                                                                        "adam_*",
                                                                        "num_train_epochs",
                                                                        "max_steps",
                                                                        "lr_scheduler_*",
                                                                        "warmup_*",
                                                                        "log_*",
                                                                        "logging_*",
                                                                        "save_*",
                                                                        "seed",
                                                                        "data_seed",
                                                                        "eval_*",
                                                                        "run_name",
                                                                        "report_to",
                                                                        "dataloader_*",
                                                                        "remove_unused_columns",
                                                                        "label_names",
                                                                        "load_best_*",
                                                                        "metric_for_best_model",
                                                                        "greater_is_better",
                                                                        "ddp_*",
                                                                        "group_by_length",
                                                                        "length_column_name",
                                                                        "push_to_hub*",
                                                                        "hub_*",
                                                                        "resume_from_checkpoint",
                                                                        "neftune_noise_alpha",
                                                                        "disable_tqdm",
                                                                        "include_*",
                                                                        "full_determinism",
                                                                        "torchdynamo",
                                                                        "ignore_data_skip",
                                                                        "past_index",
                                                                        "model_revision",
                                                                        "trust_remote_code",
                                                                        "dataset_*",
                                                                        "dataset",
                                                                        "datasets",
                                                                        "preprocessing_*",
                                                                        "max_samples",
                                                                        "chat_template*",
                                                                        "tokenizer_*",
                                                                        "prediction_loss_only",
                                                                        "per_device_eval_batch_size",
                                                                        "evaluation_strategy",
                                                                        "packing*",
                                                                        "eos_token",
                                                                        "pad_to_multiple_of",
                                                                        "padding_free",
                                                                        "completion_only_loss",
                                                                        "assistant_only_loss",
                                                                        "ignore_bias_buffers",
                                                                        "model_init_kwargs",
                                                                        "bf16_full_eval",
                                                                        "restore_callback_states_from_checkpoint",
                                                                        "average_tokens_across_devices"});

constexpr std::string_view kWrappedClasses = "transformer_layer_cls_to_wrap";
constexpr auto kStrategies =
    std::to_array<std::string_view>({"full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2"});
constexpr auto kPlans = std::to_array<std::string_view>(
    {"fsdp1-full-shard", "fsdp1-shard-grad-op", "fsdp1-no-shard", "fsdp1-hybrid-shard", "fsdp1-hybrid-shard-zero2"});
constexpr auto kFsdpWithoutMemory =
    std::to_array<std::string_view>({"sync_module_states", "state_dict_type", "final_state_dict_type", "xla",
                                     "xla_fsdp_v2", "xla_fsdp_grad_ckpt", "fsdp_version", "mixed_precision_policy"});

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// The words of `fsdp`: a text with blanks between them, or a list. None where FSDP is off.
std::optional<std::vector<std::string>> fsdp_words(ForeignFile& file) {
  const auto* node = file.map().take("fsdp");
  if (!node) return file.has("fsdp_config") ? std::optional<std::vector<std::string>>{std::in_place} : std::nullopt;
  std::vector<std::string> words;
  if (node->kind == NodeKind::sequence) {
    for (const auto& item : node->items) words.push_back(lowered(item->text));
    return words;
  }
  if (const auto flag = boolean_of(*node)) return *flag ? std::optional{words} : std::nullopt;
  std::string word;
  for (const char c : node->text + " ") {
    if (c != ' ' && c != ',') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(lowered(std::exchange(word, "")));
    }
  }
  return words.empty() ? std::nullopt : std::optional{words};
}

bool is_among(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// fsdp_config with its keys in one spelling: without the prefix, booleans and words as texts in small letters
/// (training_args.py reads them with str(x).lower()), but for the names of classes.
NodePtr plain_config(const TextNode& config) {
  TextNode plain = config;
  for (Entry& entry : plain.entries) {
    if (entry.key.starts_with("fsdp_") && entry.key != "fsdp_version") entry.key.erase(0, 5);
    if (entry.value->kind != NodeKind::scalar || entry.key == kWrappedClasses) continue;
    TextNode value = *entry.value;
    value.text = lowered(value.text), value.quoted = false;
    entry.value = std::make_shared<TextNode>(std::move(value));
  }
  return std::make_shared<TextNode>(std::move(plain));
}

/// Options of a plan, in the making.
class Options {
 public:
  explicit Options(Position at) : at_(std::move(at)) {}
  void add(std::string key, const std::string& value) { entries_.push_back({std::move(key), at_, scalar(value, at_)}); }
  void list(std::string key, const std::vector<std::string>& words) {
    entries_.push_back({std::move(key), at_, list_of(words, at_)});
  }
  void flag(std::string key, bool value) { add(std::move(key), value ? "true" : "false"); }
  NodePtr plan(std::string name) { return map_of({{std::move(name), at_, map_of(std::move(entries_), at_)}}, at_); }

 private:
  Position at_;
  std::vector<Entry> entries_;
};

bool stored_in_integers(const JobTree& job) {
  const auto* type = job.value("quantization", "quant_type");
  const auto* storage = job.value("quantization", "quant_storage");
  if (!type) return false;
  const auto dtype = dtype_from_name(storage ? storage->text : "uint8");
  return dtype && !is_floating(*dtype);
}

std::int64_t size_of(ForeignFile& file, std::string_view key) {
  return file.map().integer(key, {1, kMostRanks}).value_or(1);
}

/// A file that another one names, as seen from the folder of that: beside it, or below a folder above it, in which its
/// tool may have been started.
std::string seen_from(const Position& from, const std::string& name, const FileReader& files) {
  namespace fs = std::filesystem;
  std::string up;
  for (fs::path folder = fs::path(from.file).parent_path();; folder = folder.parent_path()) {
    if (files.kind_of((folder / name).lexically_normal().string()) == FileReader::Kind::file) return up + name;
    if (folder.empty() || folder == folder.parent_path()) return name;
    up += "../";
  }
}

/// What is under fsdp_config: a map, or the name of a file with one (training_args.py takes both). Null after an error.
NodePtr fsdp_config(ForeignFile& file, const TextNode* given, const KeyPlace& at) {
  if (!given) return map_of({}, at.position);
  if (given->kind == NodeKind::map) return plain_config(*given);
  if (given->kind != NodeKind::scalar) {
    file.map().refuse("fsdp_config", "wrong-type",
                      "expected a map of keys and values, or the name of a file with one, found " + describe(*given));
    return nullptr;
  }
  const FileReader& files = file.context().files;
  const std::string path = path_beside(at.position.file, seen_from(at.position, given->text, files));
  const NodePtr read = read_map(path, at, files, file.map().findings());
  return read ? plain_config(*read) : nullptr;
}

/// A list, or a text with commas between: the Trainer joins what it has by commas, where accelerate parts it again.
std::optional<std::vector<std::string>> wrapped_classes(MapReader& keys) {
  const auto* node = keys.take(kWrappedClasses);
  if (!node || node->kind == NodeKind::null) return std::nullopt;
  return node->kind == NodeKind::scalar ? keys.words_between_commas(kWrappedClasses) : keys.words(kWrappedClasses);
}

void read_fsdp(ForeignFile& file, const std::vector<std::string>& words, bool fsdp1) {
  const auto* given = file.map().take("fsdp_config");
  const auto at = file.map().place_of(given ? "fsdp_config" : "fsdp");
  const NodePtr config = fsdp_config(file, given, at);
  if (!config) return;
  MapReader keys(config.get(), at, file.map().findings());
  const auto flag = [&](std::string_view key, bool fallback) { return keys.boolean(key).value_or(fallback); };
  constexpr auto kVersions = std::to_array<std::string_view>({"1", "2"});
  const auto top = file.map().word("fsdp_version", kVersions);
  const auto own = keys.word(keys.has("version") ? "version" : "fsdp_version", kVersions);
  const bool second = own || top ? own.value_or(top.value_or(0)) == 1U : !fsdp1;
  const bool adapter = file.job().has("adapter", "type");
  Options options(at.position);
  options.flag("cpu_offload",
               is_among(words, "offload") || flag("cpu_offload", false) || flag("offload_params", false));
  const auto policy = keys.text("auto_wrap_policy");
  const auto least = keys.integer("min_num_params", {0, std::int64_t{1} << 62}).value_or(0);
  const bool by_size = policy ? *policy == "size_based_wrap" : least > 0;
  const auto classes = wrapped_classes(keys);
  if (classes && least > 0)
    keys.refuse("min_num_params", "bad-value",
                "`min_num_params` and `transformer_layer_cls_to_wrap` are mutually exclusive", "leave one of them out");
  // Where no policy asks for them the Trainer says them to nobody (training_args.py, __post_init__).
  const bool by_class = !by_size && (policy ? *policy != "no_wrap" : second || is_among(words, "auto_wrap"));
  if (classes && by_class) options.list("transformer_cls_names_to_wrap", *classes);
  std::string name;
  if (second) {
    if (by_size) keys.refuse("min_num_params", "not-supported", "wrapping by size under FSDP2 is not planned");
    const bool reshards = flag("reshard_after_forward", !is_among(words, "shard_grad_op"));
    const bool replicated = size_of(file, "dp_replicate_size") > 1;
    options.flag("reshard_after_forward", reshards);
    if (replicated) options.add("dp_shard_size", std::to_string(size_of(file, "dp_shard_size")));
    name = replicated                       ? "fsdp2-hsdp"
           : stored_in_integers(file.job()) ? "fsdp2-local-base"
           : reshards                       ? "fsdp2"
                                            : "fsdp2-no-reshard";
    for (const std::string_view key :
         {"use_orig_params", "forward_prefetch", "backward_prefetch", "limit_all_gathers", "sharding_strategy"})
      keys.take(key);
  } else {
    std::size_t strategy = 0;
    for (std::size_t i = 0; i < kStrategies.size(); ++i)
      if (is_among(words, kStrategies[i])) strategy = i;
    if (const auto word = keys.word("sharding_strategy", kStrategies)) strategy = *word;
    options.flag("use_orig_params", flag("use_orig_params", true));
    options.flag("forward_prefetch", flag("forward_prefetch", false));
    options.add("backward_prefetch", keys.text("backward_prefetch").value_or("no_prefetch"));
    options.flag("limit_all_gathers", flag("limit_all_gathers", true));
    const bool wraps = policy ? *policy != "no_wrap" : is_among(words, "auto_wrap") || by_size;
    // With an adapter the Trainer takes PEFT's policy, whatever the file says (trainer.py, update_fsdp_plugin_peft).
    if (!adapter) options.add("auto_wrap_policy", by_size ? "size_based_wrap" : wraps ? "auto" : "no_wrap");
    if (by_size && least > 0) options.add("min_num_params", std::to_string(least));
    keys.take("reshard_after_forward");
    name = kPlans[strategy];
  }
  if (!flag("cpu_ram_efficient_loading", false))
    file.job().say("model", "loading", "cpu", keys.place_of("cpu_ram_efficient_loading").position);
  // FSDP's own wrapper is torch's checkpoint without reentrance around each unit's module.
  if (flag("activation_checkpointing", false)) say_checkpointing(file, "fsdp_config", false);
  keys.finish_foreign(kFsdpWithoutMemory);
  file.job().replace("plans", options.plan(name));
}

NodePtr evaluation_of(ForeignFile& file, std::string_view key) {
  const Position at = file.map().place_of(key).position;
  const auto* size = file.map().take("per_device_eval_batch_size");
  std::vector<Entry> entries{{"prediction_loss_only", at, scalar("true", at)}};
  entries.push_back({"per_device_eval_batch_size", at, scalar(size ? size->text : "8", size ? size->position : at)});
  return map_of(std::move(entries), at);
}

}  // namespace

std::span<const std::string_view> trainer_keys_without_memory() { return kTrainerWithoutMemory; }

void say_checkpointing(ForeignFile& file, std::string_view key, bool reentrant) {
  file.map().take(key);
  const Position at = file.map().place_of(key).position;
  file.job().set("training", "gradient_checkpointing",
                 map_of({{"use_reentrant", at, scalar(reentrant ? "true" : "false", at)}}, at));
}

void read_low_rank_keys(ForeignFile& file, std::string_view optimizer) {
  const std::string name = file.map().text(optimizer).value_or("");
  const bool projects = name.starts_with("apollo_") || name.starts_with("galore_");
  for (const std::string_view key : {"optim_target_modules", "optim_args"})
    if (projects)
      file.copy(key, "training", key);
    else
      file.map().take(key);
}

void read_trainer_keys(ForeignFile& file) {
  file.copy_or("per_device_train_batch_size", "training", "micro_batch_size", "8");
  file.copy("gradient_accumulation_steps", "training", "gradient_accumulation_steps");
  file.copy("optim", "training", "optimizer");
  read_low_rank_keys(file, "optim");
  file.copy("max_grad_norm", "training", "max_grad_norm");
  file.copy("weight_decay", "training", "weight_decay");
  file.copy("tf32", "training", "tf32");
  for (const std::string_view key : {"eval_strategy", "evaluation_strategy"}) {
    const auto when = file.map().text(key);
    if (when && *when != "no") file.job().set("training", "evaluation", evaluation_of(file, key));
  }
}

void read_trainer_parallelism(ForeignFile& file, bool fsdp1) {
  if (const auto* node = file.map().take("deepspeed")) {
    if (node->kind != NodeKind::scalar)
      return file.refuse("deepspeed", "a configuration within this file is not read: give it a file of its own");
    file.job().replace("plans", scalar(seen_from(node->position, node->text, file.context().files), node->position));
    for (const std::string_view key : {"fsdp", "fsdp_config", "fsdp_version"}) file.map().take(key);
    return;
  }
  if (const auto words = fsdp_words(file)) read_fsdp(file, *words, fsdp1);
}

bool trainer_defaults_to_fsdp1(const StackVersions& stack) { return stack.transformers < Version{5, 10, 0}; }

std::optional<ShardingPlan> launched_plan(ForeignFile& file) {
  const TextNode* plans = find(file.context().overrides, "plans");
  const NodePtr own = file.job().tree();
  if (!plans) plans = find(*own, "plans");
  if (!plans || plans->kind != NodeKind::scalar) return std::nullopt;
  Findings unheard;  // the job reader reads the file again, and tells
  const auto launch = read_launch_file(path_beside(plans->position.file, plans->text), {"plans", plans->position},
                                       file.context().files, unheard);
  return launch ? std::optional{launch->plan.plan} : std::nullopt;
}

bool is_zero3(const std::optional<ShardingPlan>& plan) {
  const auto* zero = plan ? std::get_if<Zero>(&*plan) : nullptr;
  return zero && zero->stage == 3;
}

bool is_fsdp2(const std::optional<ShardingPlan>& plan) { return plan && std::holds_alternative<Fsdp2>(*plan); }

}  // namespace qlp

#include <algorithm>
#include <array>

#include "config/job_sections.h"
#include "config/job_tree.h"
#include "model/target_matching.h"
#include "plan/job_names.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

constexpr std::int64_t kLongestSequence = 1 << 24;
constexpr std::int64_t kMostSamples = 1 << 20;
/// Tokens of one micro batch: with the largest vocabulary, no count of bytes overflows.
constexpr std::int64_t kMostTokens = 1 << 30;
constexpr std::int64_t kMostSteps = 64;

/// Names of the Trainer (transformers 4.48 to 5.24, training_args.py, OptimizerNames) that are not planned.
constexpr std::array<NotSupported, 7> kOtherOptimizers{{
    {"adamw_hf", "transformers has dropped its own AdamW; take adamw_torch"},
    {"adamw_apex_fused", "NVIDIA Apex is not planned"},
    {"adamw_torch_xla", "it is for TPUs"},
    {"adamw_torch_npu_fused", "it is for Ascend NPUs"},
    {"adamw_anyprecision", "torchdistx is not planned"},
    {"galore_adafactor_layerwise", "the Trainer gives it a rate beside relative_step=True, which it refuses"},
    {"paged_adamw", "the Trainer's names are paged_adamw_32bit and paged_adamw_8bit"},
}};

constexpr std::array<NotSupported, 3> kOtherPrecisions{{
    {"fp8", "8-bit float matrix products are not planned yet"},
    {"float16", "the Trainer's word for it is fp16"},
    {"bfloat16", "the Trainer's word for it is bf16"},
}};

constexpr std::array<NotSupported, 4> kOtherAttention{{
    {"flash_attention_3", "not planned yet"},
    {"flex_attention", "not planned yet"},
    {"paged_attention", "it is for generation"},
    {"xformers", "not planned yet"},
}};

/// transformers' default for gradient_checkpointing_enable(): reentrant up to 4, not from 5.0.0 on (modeling_utils.py
/// of 4.57.1 and 5.0.0).
GradientCheckpointing default_checkpointing(const StackVersions& stack) {
  return stack.transformers >= Version{5, 0, 0} ? GradientCheckpointing::nonreentrant
                                                : GradientCheckpointing::reentrant;
}

std::string spelled(GradientCheckpointing mode) {
  return mode == GradientCheckpointing::reentrant ? "use_reentrant: true" : "use_reentrant: false";
}

GradientCheckpointing read_checkpointing(MapReader& map, const StackVersions& stack) {
  constexpr std::string_view kKey = "gradient_checkpointing";
  const auto* node = map.take(kKey);
  if (!node) {
    map.default_used(kKey, "false");
    return GradientCheckpointing::none;
  }
  const auto by_version = default_checkpointing(stack);
  if (node->kind != NodeKind::map) {
    const auto on = map.boolean(kKey);
    if (!on.value_or(false)) return GradientCheckpointing::none;
    map.findings().note("default-used", map.place_of(kKey),
                        spelled(by_version) + ", as transformers " + to_string(stack.transformers) + " does");
    return by_version;
  }
  MapReader options(node, map.place_of(kKey), map.findings());
  options.require("use_reentrant", "true or false");
  const auto reentrant = options.boolean("use_reentrant");
  options.finish();
  return reentrant.value_or(false) ? GradientCheckpointing::reentrant : GradientCheckpointing::nonreentrant;
}

void read_precision(MapReader& map, std::string_view fallback, TrainingSpec& spec) {
  constexpr std::array<std::string_view, 3> kWords{"no", "bf16", "fp16"};
  const auto index = map.word("mixed_precision", kWords, kOtherPrecisions);
  const std::string_view word = index ? kWords[*index] : fallback;
  if (!map.has("mixed_precision")) map.default_used("mixed_precision", "\"" + std::string(word) + "\"");
  spec.bf16 = word == "bf16", spec.fp16 = word == "fp16";
}

/// TrainingArguments.optim: fused from torch 2.8 on (transformers training_args.py, default_optim).
std::string_view default_optimizer(const StackVersions& stack) {
  return stack.torch >= Version{2, 8, 0} ? "adamw_torch_fused" : "adamw_torch";
}

NamedOptimizer read_optimizer(MapReader& map, const StackVersions& stack) {
  constexpr std::string_view kKey = "optimizer";
  std::vector<std::string_view> names;
  for (const OptimizerName& row : kOptimizerNames) names.push_back(row.name);
  const auto index = map.word(kKey, names, kOtherOptimizers);
  if (!map.has(kKey)) map.default_used(kKey, std::string(default_optimizer(stack)));
  return named_optimizer(index ? names[*index] : default_optimizer(stack));
}

/// "rank=64, scale_type=tensor" as a map.
NodePtr split_options(const TextNode& node) {
  std::string text = node.text;
  std::erase(text, ' ');
  std::vector<Entry> entries;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string option = text.substr(at, end - at);
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string value = equals < option.size() ? option.substr(equals + 1) : "";
    entries.push_back({option.substr(0, equals), node.position, scalar(value, node.position)});
    at = end + 1;
  }
  return map_of(std::move(entries), node.position);
}

/// TrainingArguments.optim_args: a map here, one text "rank=64,scale_type=tensor" there (trainer.py).
template <class Read>
void read_optim_args(MapReader& training, Read read) {
  constexpr std::string_view kKey = "optim_args";
  const auto* node = training.take(kKey);
  const NodePtr split = node && node->kind == NodeKind::scalar ? split_options(*node) : nullptr;
  MapReader map(split ? split.get() : node, training.place_of(kKey), training.findings());
  read(map);
  map.finish();
}

/// What GaLore and APOLLO have both.
void read_low_rank(MapReader& map, LowRank& low_rank) {
  low_rank.rank = map.integer_or("rank", {1, 1 << 16}, low_rank.rank);
  low_rank.proj_type = map.choice_or("proj_type", low_rank.proj_type);
  low_rank.update_proj_gap = map.integer_or("update_proj_gap", {1, 1 << 20}, low_rank.update_proj_gap);
  low_rank.scale = map.number_or("scale", {0, 1e9}, low_rank.scale);
}

void read_apollo(MapReader& map, Apollo& apollo) {
  apollo.proj = map.choice_or("proj", apollo.proj);
  apollo.scale_type = map.choice_or("scale_type", apollo.scale_type);
  read_low_rank(map, apollo.low_rank);
  if (apollo.low_rank.proj_type == ProjectionSide::full)
    map.refuse(
        "proj_type", "not-supported",
        apollo.proj == Apollo::Projector::svd
            ? "APOLLO's second step takes its vectors of both sides for a tensor: 'list' object has no attribute "
              "'device''"
            : "APOLLO has random projections of one side: 'full rank projection is not implemented yet'",
        "take std, reverse_std, left or right");
}

std::optional<OptimTargets> read_optim_targets(MapReader& map, const NamedOptimizer& optimizer) {
  constexpr std::string_view kKey = "optim_target_modules";
  if (!std::holds_alternative<Apollo>(optimizer.kind) && !std::holds_alternative<GaLore>(optimizer.kind)) {
    for (const std::string_view key : {kKey, std::string_view("optim_args")})
      map.forbid(key, "it is for the optimizers of GaLore and APOLLO", "leave it out");
    return std::nullopt;
  }
  map.require(kKey,
              "the Trainer: 'You need to define `optim_target_modules` to use " + optimizer.name + " optimizers'");
  const auto* node = map.take(kKey);
  OptimTargets targets;
  if (!node || node->kind != NodeKind::scalar) {
    targets.modules = map.words(kKey).value_or(std::vector<std::string>{});
  } else if (const std::string text = map.text(kKey).value_or(""); text == "all-linear" || text == "all_linear") {
    targets.all_linear = true;
  } else {
    targets.pattern = text;
  }
  for (const std::string& pattern : targets.modules)
    if (const auto error = error_in_pattern(pattern))
      map.refuse(kKey, "bad-pattern", "not a regular expression that is supported: " + *error);
  if (const auto error = error_in_pattern(targets.pattern))
    map.refuse(kKey, "bad-pattern", "not a regular expression that is supported: " + *error);
  return targets;
}

/// sdpa, where transformers has it for the family (modeling_utils.py, _check_and_adjust_attn_implementation).
Attention default_attention(std::optional<Family> family, const StackVersions& stack) {
  const bool capped = family == Family::gemma2 && !StackProfile(stack).models.gemma2_takes_sdpa();
  return capped || family == Family::gpt_oss ? Attention::eager : Attention::sdpa;
}

constexpr std::int64_t kMostEvaluated = 1 << 24;

std::optional<EvaluationSpec> read_evaluation(MapReader& training) {
  constexpr std::string_view kKey = "evaluation";
  const auto* node = training.take(kKey);
  if (!node) return std::nullopt;
  MapReader map(node, training.place_of(kKey), training.findings());
  EvaluationSpec spec;
  spec.per_device_eval_batch_size = map.integer_or("per_device_eval_batch_size", {1, kMostSamples}, 8);
  spec.prediction_loss_only = map.boolean_or("prediction_loss_only", true);
  if (!spec.prediction_loss_only)
    map.require("num_samples", "the number of samples of the evaluation set, whose predictions are kept");
  spec.num_samples = map.integer("num_samples", {1, kMostEvaluated}).value_or(0);
  spec.eval_accumulation_steps = map.integer("eval_accumulation_steps", {1, kMostEvaluated});
  map.finish();
  return spec;
}

constexpr NotSupported kLocalStateDict{"LOCAL_STATE_DICT", "flat parameters as they lie on a rank are not planned"};
constexpr std::array<NotSupported, 2> kOtherStateDicts{{
    {"SHARDED_STATE_DICT", "Trainer.save_model() writes nothing then: say training.checkpoint"},
    kLocalStateDict,
}};

bool read_save(MapReader& training) {
  constexpr std::string_view kKey = "save";
  constexpr std::array<std::string_view, 1> kWords{"FULL_STATE_DICT"};
  const auto* node = training.take(kKey);
  if (!node) return false;
  MapReader map(node, training.place_of(kKey), training.findings());
  if (!map.has("state_dict_type")) map.default_used("state_dict_type", std::string(kWords[0]));
  map.word("state_dict_type", kWords, kOtherStateDicts);
  map.finish();
  return true;
}

std::optional<StateDictType> read_checkpoint(MapReader& training, StateDictType fallback) {
  constexpr std::string_view kKey = "checkpoint";
  const auto* node = training.take(kKey);
  if (!node) return std::nullopt;
  MapReader map(node, training.place_of(kKey), training.findings());
  const StateDictType type = map.choice_or("state_dict_type", fallback, std::array{kLocalStateDict});
  map.finish();
  return type;
}

}  // namespace

TrainingSpec read_training_section(const Section& where, const StackVersions& stack, std::optional<Family> family,
                                   const LaunchDefaults& defaults, Findings& findings) {
  TrainingSpec spec;
  if (!where.node) {
    findings.error("missing-key", where.place, "training is missing: it needs at least seq_len");
    return spec;
  }
  MapReader map(where.node, where.place, findings);
  spec.micro_batch_size = map.integer_or("micro_batch_size", {1, kMostSamples}, 1);
  map.require("seq_len", "the number of tokens of a sample");
  const auto seq_len = map.integer("seq_len", {1, kLongestSequence});
  spec.seq_len = seq_len.value_or(1);
  if (seq_len == 1)
    findings.warning("no-labels", map.place_of("seq_len"),
                     "a sequence of one token has none to predict: its loss is no number, and nothing is learned");
  if (spec.micro_batch_size * spec.seq_len > kMostTokens)
    map.refuse("micro_batch_size", "out-of-range",
               "micro_batch_size times seq_len is out of range: expected at most " + std::to_string(kMostTokens));
  spec.gradient_accumulation_steps = map.integer_or("gradient_accumulation_steps", {1, 1 << 20}, 1);
  spec.sync_each_batch = map.boolean_or("sync_each_batch", false);
  spec.gradient_checkpointing = read_checkpointing(map, stack);
  read_precision(map, defaults.mixed_precision, spec);
  spec.tf32 = map.boolean_or("tf32", false);
  spec.optimizer = read_optimizer(map, stack);
  spec.weight_decay = map.number_or("weight_decay", {}, 0.0);
  spec.optim_targets = read_optim_targets(map, spec.optimizer);
  if (auto* apollo = std::get_if<Apollo>(&spec.optimizer.kind))
    read_optim_args(map, [apollo](MapReader& args) { read_apollo(args, *apollo); });
  if (auto* galore = std::get_if<GaLore>(&spec.optimizer.kind))
    read_optim_args(map, [galore](MapReader& args) { read_low_rank(args, galore->low_rank); });
  spec.max_grad_norm = map.number_or("max_grad_norm", {}, 1.0);
  spec.attention = map.choice_or("attn_implementation", default_attention(family, stack), kOtherAttention);
  spec.loss = map.choice_or("loss", Loss::plain);
  spec.evaluation = read_evaluation(map);
  spec.saves_model = read_save(map);
  spec.checkpoint = read_checkpoint(map, defaults.state_dict_type);
  spec.num_steps = map.integer_or("num_steps", {1, kMostSteps}, spec.num_steps);
  map.finish();
  return spec;
}

}  // namespace qlp

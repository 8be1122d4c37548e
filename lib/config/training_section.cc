#include <array>

#include "config/job_sections.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

constexpr std::int64_t kLongestSequence = 1 << 24;
constexpr std::int64_t kMostSamples = 1 << 20;
/// Tokens of one micro batch: with the largest vocabulary, no count of bytes overflows.
constexpr std::int64_t kMostTokens = 1 << 30;
constexpr std::int64_t kMostSteps = 64;

/// Names of the Trainer (transformers 5.24, training_args.py, OptimizerNames) that are not worked out yet.
constexpr std::string_view kLater = "this optimizer is not planned yet";
constexpr std::array<NotSupported, 24> kOtherOptimizers{{
    {"adamw_bnb_8bit", kLater},
    {"adamw_8bit", kLater},
    {"paged_adamw_32bit", kLater},
    {"paged_adamw_8bit", kLater},
    {"paged_adamw", kLater},
    {"lion_32bit", kLater},
    {"lion_8bit", kLater},
    {"paged_lion_32bit", kLater},
    {"paged_lion_8bit", kLater},
    {"adafactor", kLater},
    {"adamw_torch_8bit", kLater},
    {"adamw_torch_4bit", kLater},
    {"adamw_hf", kLater},
    {"adamw_apex_fused", kLater},
    {"adamw_anyprecision", kLater},
    {"rmsprop", kLater},
    {"adagrad", kLater},
    {"galore_adamw", kLater},
    {"apollo_adamw", kLater},
    {"lomo", kLater},
    {"adalomo", kLater},
    {"schedule_free_adamw", kLater},
    {"ademamix", kLater},
    {"muon", kLater},
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

void read_precision(MapReader& map, TrainingSpec& spec) {
  constexpr std::array<std::string_view, 3> kWords{"no", "bf16", "fp16"};
  const auto index = map.word("mixed_precision", kWords, kOtherPrecisions);
  if (!map.has("mixed_precision")) map.default_used("mixed_precision", "\"no\"");
  spec.bf16 = index == 1U, spec.fp16 = index == 2U;
}

/// TrainingArguments.optim: fused from torch 2.8 on (transformers training_args.py, default_optim).
Optimizer default_optimizer(const StackVersions& stack) {
  return stack.torch >= Version{2, 8, 0} ? Optimizer::adamw_torch_fused : Optimizer::adamw_torch;
}

/// sdpa, where transformers has it for the family (modeling_utils.py, _check_and_adjust_attn_implementation).
Attention default_attention(std::optional<Family> family, const StackVersions& stack) {
  return family == Family::gemma2 && !StackProfile(stack).gemma2_takes_sdpa() ? Attention::eager : Attention::sdpa;
}

}  // namespace

TrainingSpec read_training_section(const Section& where, const StackVersions& stack, std::optional<Family> family,
                                   Findings& findings) {
  TrainingSpec spec;
  if (!where.node) {
    findings.error("missing-key", where.place, "training is missing: it needs at least seq_len");
    return spec;
  }
  MapReader map(where.node, where.place, findings);
  spec.micro_batch_size = map.integer_or("micro_batch_size", {1, kMostSamples}, 1);
  map.require("seq_len", "the number of tokens of a sample");
  spec.seq_len = map.integer("seq_len", {1, kLongestSequence}).value_or(1);
  if (spec.micro_batch_size * spec.seq_len > kMostTokens)
    map.refuse("micro_batch_size", "out-of-range",
               "micro_batch_size times seq_len is out of range: expected at most " + std::to_string(kMostTokens));
  spec.gradient_accumulation_steps = map.integer_or("gradient_accumulation_steps", {1, 1 << 20}, 1);
  spec.sync_each_batch = map.boolean_or("sync_each_batch", false);
  spec.gradient_checkpointing = read_checkpointing(map, stack);
  read_precision(map, spec);
  spec.optimizer = map.choice_or("optimizer", default_optimizer(stack), kOtherOptimizers);
  spec.max_grad_norm = map.number_or("max_grad_norm", {}, 1.0);
  spec.attention = map.choice_or("attn_implementation", default_attention(family, stack), kOtherAttention);
  spec.loss = map.choice_or("loss", Loss::plain);
  spec.num_steps = map.integer_or("num_steps", {1, kMostSteps}, spec.num_steps);
  map.finish();
  return spec;
}

}  // namespace qlp

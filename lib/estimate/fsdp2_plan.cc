#include "estimate/fsdp2_plan.h"

#include <algorithm>
#include <string>

#include "base/refusal.h"
#include "estimate/model_options.h"
#include "estimate/sharded_load.h"
#include "estimate/wrap_rules.h"
#include "model/family_design.h"
#include "model/target_matching.h"
#include "plan/loading.h"

namespace qlp {
namespace {

/// Of 4-bit weights; those of 8 bits are not sharded at all (eight_bit_rules.h).
bool has_integer_storage(const JobSpec& job) {
  return job.quantization && !job.quantization->eight_bit() && !is_floating(job.quantization->quant_storage);
}

void check_base(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack, Diagnostics& refusals) {
  const bool local = plan.ignored_params == Fsdp2Ignored::quantized;
  if (has_integer_storage(job) && !stack.fsdp2.ignores_integer_storage())
    refusals.push_back(refusal("fsdp2-integer-storage",
                               "fully_shard cannot shard 4-bit weights that are stored as integers: a parameter of an "
                               "integer dtype cannot be made anew as one that requires a gradient",
                               "quantization.quant_storage", "set quant_storage to bfloat16"));
  else if (has_integer_storage(job) && !local && plan.ignored_params != Fsdp2Ignored::base)
    refusals.push_back(
        refusal("fsdp2-integer-storage",
                "accelerate leaves 4-bit weights that are stored as integers out of sharding: every rank "
                "keeps them whole",
                "quantization.quant_storage",
                "the plan fsdp2-local-base is what runs; set quant_storage to bfloat16 to shard them"));
  if (local && !has_integer_storage(job) && !(job.quantization && job.quantization->eight_bit()))
    refusals.push_back(refusal("fsdp2-local-base-floats",
                               "accelerate keeps only 4-bit weights that are stored as integers whole on every rank",
                               "quantization.quant_storage",
                               job.quantization ? "set quant_storage to uint8" : "take the plan fsdp2"));
}

void check_ignored(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (plan.ignored_params == Fsdp2Ignored::none || plan.ignored_params == Fsdp2Ignored::quantized) return;
  if (!job.adapter)
    refusals.push_back(refusal("fsdp2-ignores-all",
                               "every parameter is trained: there is no base beside an adapter to leave out", "plans",
                               "leave ignored_params out"));
  if (!stack.fsdp2.has_ignored_params())
    refusals.push_back(refusal("fsdp2-ignored-params", "ignored_params needs torch 2.7 and accelerate 1.11 or newer",
                               "stack", "leave it out, or take a newer stack"));
  if (job.quantization && plan.ignored_params == Fsdp2Ignored::base &&
      upcast_of(job, plan, stack) == Fsdp2Upcast::whole_model)
    refusals.push_back(refusal("fsdp2-ignored-upcast",
                               "accelerate before 1.13 casts the packed 4-bit weights that are left out to float32",
                               "stack.accelerate", "take accelerate 1.13 or newer"));
  if (loading_under(job, plan) == Loading::rank0)
    refusals.push_back(refusal("fsdp2-ignored-loading",
                               "RAM-efficient loading gives only sharded parameters their weights", "model.loading",
                               "set loading to gpu or cpu"));
}

void check_loading(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (plan.hybrid && !stack.fsdp2.has_hybrid_mesh())
    refusals.push_back(refusal("fsdp2-hybrid-stack", "a mesh of dp_replicate x dp_shard needs accelerate 1.10 or newer",
                               "stack.accelerate", "take the plan fsdp2, or a newer accelerate"));
  else if (plan.hybrid && loads_state_dict(job, plan) && !stack.fsdp2.loads_in_hybrid_mesh())
    refusals.push_back(refusal("fsdp2-hybrid-loading",
                               "accelerate before 1.11 cannot load from rank 0 into a mesh of two dimensions",
                               "model.loading", "set loading to gpu or cpu"));
  if (plan.cpu_offload && loads_state_dict(job, plan) && !stack.fsdp2.loads_offloaded())
    refusals.push_back(refusal("fsdp2-offload-loading",
                               "accelerate before 1.13 leaves what it loads from rank 0 on the GPU, where offload does "
                               "not take it",
                               "model.loading", "set loading to gpu or cpu"));
}

/// Each unit hands its output on in output_dtype; without cast_forward_inputs the next one multiplies that with weights
/// in param_dtype.
void check_policy(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  const MixedPrecisionPolicy policy = precision_of(job, plan);
  const DType computed = policy.param_dtype.value_or(job.dtype);
  if (policy.cast_forward_inputs || policy.output_dtype.value_or(computed) == computed) return;
  refusals.push_back(refusal("fsdp2-input-dtype",
                             "a layer gives its output in " + std::string(name_of(*policy.output_dtype)) +
                                 ", and the next one, which does not cast its inputs, has weights in " +
                                 std::string(name_of(computed)),
                             "plans", "set cast_forward_inputs to true, or output_dtype to the dtype of the weights"));
}

void check_wrapping(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  const auto& classes = plan.transformer_cls_names_to_wrap;
  check_wrapped_classes(job, classes, plan.auto_wrap_policy == Fsdp2Wrap::transformer_based_wrap, "plans", refusals);
  const auto kinds = wrapped_kinds(job, classes);
  const bool prefetches = plan.forward_prefetch > 0 || plan.backward_prefetch > 0;
  if (classes && prefetches && std::ranges::find(kinds, ModuleKind::decoder_layer) == kinds.end())
    refusals.push_back(refusal("fsdp2-prefetch-units", "it is decoder layers that are told to gather ahead", "plans",
                               "leave forward_prefetch and backward_prefetch out, or name the class of the layers"));
}

/// Kinds of which each layer has one.
std::vector<ModuleKind> units_by_policy(const JobSpec& job, const Fsdp2& plan) {
  if (plan.auto_wrap_policy == Fsdp2Wrap::no_wrap) return {};
  return wrapped_kinds(job, plan.transformer_cls_names_to_wrap);
}

/// Other than one and itself.
bool has_factor(std::int64_t number) {
  for (std::int64_t factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0) return true;
  return false;
}

void check_mesh(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  const std::int64_t ranks = shard_ranks(job, plan);
  const std::string world = std::to_string(job.cluster.world_size);
  if (plan.hybrid && job.cluster.world_size % ranks != 0)
    refusals.push_back(refusal("fsdp2-mesh",
                               world + " ranks are not a whole number of groups of " + std::to_string(ranks),
                               "plans.fsdp2-hsdp.dp_shard_size", "give a factor of cluster.world_size"));
  else if (plan.hybrid && job.cluster.world_size == ranks)
    refusals.push_back(refusal("fsdp2-nothing-replicated",
                               "the " + world + " ranks are one group: there is no second one to replicate over",
                               "plans.fsdp2-hsdp.dp_shard_size",
                               has_factor(job.cluster.world_size)
                                   ? "take the plan fsdp2, or give dp_shard_size a smaller factor of cluster.world_size"
                                   : "take the plan fsdp2"));
  else if (plan.hybrid && ranks == 1)
    refusals.push_back(refusal("fsdp2-nothing-sharded", "a shard dimension of one rank shards nothing",
                               "plans.fsdp2-hsdp.dp_shard_size", "take the plan ddp, or give dp_shard_size 2 or more"));
  const auto* size = std::get_if<std::int64_t>(&plan.reshard_after_forward);
  if (size && ranks % *size != 0)
    refusals.push_back(refusal("fsdp2-reshard-size",
                               "reshard_after_forward " + std::to_string(*size) + " is no factor of the " +
                                   std::to_string(ranks) + " ranks that parameters are sharded over",
                               "plans", "give a factor, true or false"));
}

/// Tied tables of which one is trained as a copy: the original is in the unit of the embedding and in that of the head.
bool shares_across_units(const JobSpec& job, const StackProfile& stack) {
  return job.model.tie_word_embeddings && job.adapter && stack.fsdp2.splits_root() &&
         (is_saved_module(*job.adapter, "model.embed_tokens") || is_saved_module(*job.adapter, "lm_head"));
}

/// Nothing runs in the head's unit before a loss reads its weight: PEFT hides the norm that would be there, and no
/// embedding shares the weight.
bool head_stays_cut(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack) {
  return stack.fsdp2.splits_root() && job.adapter && !job.model.tie_word_embeddings &&
         plan.ignored_params != Fsdp2Ignored::base;
}

void check_liger(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (!uses_liger(job) || !head_stays_cut(job, plan, stack)) return;
  refusals.push_back(refusal("fsdp2-liger",
                             "Liger's loss reads the weight of the head without calling it, and nothing else in its "
                             "unit runs: 'aten.mm.out got mixed torch.Tensor and DTensor'",
                             "training.loss", "set loss to plain, or take an fsdp1 plan"));
}

void check_stack(const JobSpec& job, const StackProfile& stack, Diagnostics& refusals) {
  if (shares_across_units(job, stack) && stack.fsdp2.refuses_shared())
    refusals.push_back(refusal("fsdp2-shared-parameter",
                               "the tied embedding is in two FSDP2 groups once a copy of it is trained, which torch "
                               "refuses",
                               "adapter.modules_to_save",
                               "train the embedding with LoRA, or untie it from the head in the checkpoint"));
  const bool casts_in_recomputation =
      stack.fsdp2.behaviour().casts_everywhere || stack.models.layers_checkpoint_forward();
  if (design_of(job.model.family).rotary_in_float && job.training.bf16 && !casts_in_recomputation &&
      job.training.gradient_checkpointing == GradientCheckpointing::nonreentrant)
    refusals.push_back(refusal("fsdp2-recomputed-dtype",
                               "checkpointing stops: the recomputed rotary tables are float32 where FSDP2 "
                               "had cast them to bfloat16 in the forward pass",
                               "training.gradient_checkpointing",
                               "set use_reentrant to true, or leave checkpointing out"));
  const bool adapters_differ = job.adapter && adapter_dtype(job) != job.dtype;
  const bool all_float32 = job.training.mixed_precision() && stack.fsdp2.upcast() == Fsdp2Upcast::whole_model;
  if (adapters_differ && !all_float32 && !stack.fsdp2.mixes_frozen_dtypes())
    refusals.push_back(refusal("fsdp2-mixed-dtypes",
                               "FSDP2 before torch 2.8 wants one dtype in a group, and adapters are not in that of the "
                               "base",
                               "adapter.autocast_adapter_dtype", "set autocast_adapter_dtype to false"));
}

std::optional<DType> policy_dtype(const std::optional<PolicyDType>& chosen, const std::optional<DType>& automatic) {
  if (!chosen) return automatic;
  switch (*chosen) {
    case PolicyDType::none:
      return std::nullopt;
    case PolicyDType::float32:
      return DType::float32;
    case PolicyDType::bfloat16:
      return DType::bfloat16;
    case PolicyDType::float16:
      return DType::float16;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t shard_ranks(const JobSpec& job, const Fsdp2& plan) {
  const std::int64_t tp = job.cluster.mesh.tp;
  if (!plan.hybrid) return job.cluster.world_size / tp / job.cluster.mesh.pp;
  if (plan.dp_shard_size > 0) return plan.dp_shard_size * job.cluster.mesh.cp;
  return std::max<std::int64_t>(1, std::min(job.cluster.gpus_per_node, job.cluster.world_size) / tp);
}

std::int64_t shard_place(const JobSpec& job, const Fsdp2& plan, std::int64_t rank) {
  return rank / job.cluster.mesh.tp % shard_ranks(job, plan);
}

RankShare expert_share(const JobSpec& job, const Fsdp2& plan, std::int64_t rank) {
  const std::int64_t sharing = shard_ranks(job, plan) * job.cluster.mesh.tp;
  const std::int64_t ranks = std::max<std::int64_t>(1, sharing / job.cluster.mesh.ep);  // fewer than ep: refused
  return {.ranks = ranks, .rank = rank / job.cluster.mesh.ep % ranks};
}

/// accelerate dataclasses.py, set_mixed_precision: all three dtypes alike.
MixedPrecisionPolicy precision_of(const JobSpec& job, const Fsdp2& plan) {
  std::optional<DType> automatic;  // transformers' own has none: fsdp_mixed_precision of a DistributedConfig
  if (job.training.mixed_precision() && !shards_at_load(job, plan)) automatic = job.training.autocast_dtype();
  return {.param_dtype = policy_dtype(plan.mp_policy.param_dtype, automatic),
          .reduce_dtype = policy_dtype(plan.mp_policy.reduce_dtype, automatic),
          .output_dtype = policy_dtype(plan.mp_policy.output_dtype, automatic),
          .cast_forward_inputs = plan.mp_policy.cast_forward_inputs};
}

Fsdp2Upcast upcast_of(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack) {
  if (shards_at_load(job, plan)) return Fsdp2Upcast::none;
  if (plan.casts_to_float32 && job.dtype != DType::float32) return Fsdp2Upcast::whole_model;
  if (!job.training.mixed_precision()) return Fsdp2Upcast::none;
  const Fsdp2Upcast upcast = stack.fsdp2.upcast();
  if (upcast == Fsdp2Upcast::trained_parameters && job.quantization) return Fsdp2Upcast::none;
  if (upcast == Fsdp2Upcast::whole_model && job.dtype == DType::float32) return Fsdp2Upcast::none;
  return upcast;
}

std::int64_t resharded_units(const JobSpec& job, const Fsdp2& plan) {
  const StackProfile stack(job.stack);
  const bool rest =
      stack.fsdp2.splits_root() ? !job.model.tie_word_embeddings : stack.fsdp2.behaviour().root_obeys_reshard;
  const auto of_layer = static_cast<std::int64_t>(units_by_policy(job, plan).size());
  return of_layer * job.model.num_hidden_layers + (rest ? 1 : 0);
}

bool loads_state_dict(const JobSpec& job, const Fsdp2& plan) {
  return load_path(job, plan) == LoadPath::host && loading_under(job, plan) == Loading::rank0;
}

bool keeps_first_sums(const JobSpec& job, const Fsdp2& plan) {
  return std::holds_alternative<Adagrad>(job.training.optimizer.kind) && plan.ignored_params != Fsdp2Ignored::adapter;
}

Result<Fsdp2Setup> fsdp2_setup(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack) {
  Diagnostics refusals;
  if (!stack.fsdp2.exists())
    refusals.push_back(refusal("fsdp2-not-in-stack", "FSDP2 needs torch 2.6 and accelerate 1.6 or newer", "stack",
                               "take an fsdp1 plan, or a newer stack"));
  if (shards_at_load(job, plan)) return setup_at_load(job, plan, rank, stack);
  check_base(job, plan, stack, refusals);
  check_ignored(job, plan, stack, refusals);
  check_mesh(job, plan, refusals);
  check_loading(job, plan, stack, refusals);
  check_policy(job, plan, refusals);
  check_wrapping(job, plan, refusals);
  check_stack(job, stack, refusals);
  check_liger(job, plan, stack, refusals);
  if (!refusals.empty()) return Unexpected{refusals};

  const std::int64_t ranks = shard_ranks(job, plan);
  Fsdp2Setup setup;
  setup.options = {.world_size = ranks,
                   .rank = shard_place(job, plan, rank),
                   .replicas = job.cluster.world_size / job.cluster.mesh.pp / ranks,
                   .cpu_offload = plan.cpu_offload,
                   .pin_memory = plan.pin_memory,
                   .precision = precision_of(job, plan),
                   .behaviour = stack.fsdp2.behaviour()};
  setup.preparation = {.upcast = upcast_of(job, plan, stack),
                       .reshard_after_forward = plan.reshard_after_forward,
                       .wrapped = units_by_policy(job, plan),
                       .ignored = plan.ignored_params,
                       .forward_prefetch = plan.forward_prefetch,
                       .backward_prefetch = plan.backward_prefetch,
                       .copies_in_optimizer = !stack.fsdp2.drops_optimizer_parameters(),
                       .splits_root = stack.fsdp2.splits_root(),
                       .finds_final_norm = !job.adapter,
                       .loads_state_dict = loads_state_dict(job, plan)};
  setup.keeps_first_sums = keeps_first_sums(job, plan);
  return setup;
}

}  // namespace qlp

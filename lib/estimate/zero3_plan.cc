#include "estimate/zero3_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/refusal.h"
#include "estimate/zero_plan.h"
#include "estimate/zero_rules.h"
#include "model/family_design.h"
#include "model/target_matching.h"
#include "plan/loading.h"

namespace qlp {
namespace {

void check_options(const Zero& plan, const ClusterSpec& cluster, Diagnostics& refusals) {
  const auto not_modelled = [&](bool used, const char* key) {
    if (used)
      refusals.push_back(refusal("not-supported", std::string(key) + " of ZeRO-3 is not worked out yet",
                                 std::string("plans.zero3.") + key, "leave it out"));
  };
  not_modelled(plan.zero_hpz_partition_size > 1 && plan.offload_param.device != OffloadDevice::none,
               "zero_hpz_partition_size beside offload_param");
  not_modelled(plan.zero_quantized_weights, "zero_quantized_weights");
  not_modelled(plan.zero_quantized_nontrainable_weights, "zero_quantized_nontrainable_weights");
  // __avg_scatter_grads: on one node nothing is quantized.
  const bool several_nodes = cluster.world_size / cluster.gpus_per_node > 1;
  if (plan.zero_quantized_gradients && !plan.reduce_scatter)
    refusals.push_back(refusal("zero3-quantized-all-reduce",
                               "when enable all_to_all_reduce, reduce_scatter should also be enabled for data type "
                               "checks.",
                               "plans.zero3.zero_quantized_gradients", "leave it out, or set reduce_scatter to true"));
  else
    not_modelled(plan.zero_quantized_gradients && several_nodes, "zero_quantized_gradients of several nodes");
  not_modelled(plan.stage3_module_granularity_threshold > 0, "stage3_module_granularity_threshold");
  not_modelled(plan.offload_optimizer.device != OffloadDevice::none && plan.offload_optimizer.ratio < 1,
               "offload_optimizer.ratio");
}

void check_training(const JobSpec& job, Diagnostics& refusals) {
  if (job.adapter && !job.adapter->trainable_token_indices.empty() && job.model.tie_word_embeddings)
    refusals.push_back(
        refusal("zero3-tied-tokens",
                "how a tied head reads the single rows that are trained of a table that ZeRO-3 has cut is "
                "not worked out yet",
                "adapter.trainable_token_indices", "take the plan zero2, or leave them out"));
  if (job.training.gradient_checkpointing == GradientCheckpointing::nonreentrant)
    refusals.push_back(refusal(
        "zero3-nonreentrant-checkpointing",
        "ZeRO-3 frees parameters between the forward pass and its repetition, which checkpointing without reentrance "
        "stops at: 'Recomputed values for the following tensors have different metadata than during the forward pass'",
        "training.gradient_checkpointing", "set use_reentrant to true"));
}

/// Parameters that stay whole are gathered together after each step, into buffers of the first one's dtype
/// (partition_parameters.py, _allgather_params_coalesced).
void check_persistent(const JobSpec& job, const Zero3Options& options, const StackProfile& stack,
                      Diagnostics& refusals) {
  std::optional<DType> dtype;
  for (const ListedWeight& weight : persistent_weights(list_weights(job, stack.load), options)) {
    const DType own = zero_cast(weight.dtype, options.module_dtype);
    if (dtype.value_or(own) != own) {
      refusals.push_back(refusal(
          "zero3-persistent-dtypes",
          "small parameters, which ZeRO-3 gathers together after each step, are in " + std::string(name_of(*dtype)) +
              " and " + std::string(name_of(own)) + ": 'output tensor must have the same type as input tensor'",
          "training.mixed_precision", "set it to bf16, or stage3_param_persistence_threshold: 0"));
      return;
    }
    dtype = own;
  }
}

/// What is fetched together must be of one dtype where it is summed (all_gather_coalesced, get_only_unique_item).
void check_fetched(const JobSpec& job, const Zero3Options& options, const StackProfile& stack, Diagnostics& refusals) {
  if (!options.fetches_by_all_reduce) return;
  std::set<DType> dtypes;
  for (const ListedWeight& weight : list_weights(job, stack.load))
    dtypes.insert(zero_cast(weight.dtype, options.module_dtype));
  const bool castable = std::all_of(dtypes.begin(), dtypes.end(), is_floating);
  if (dtypes.size() > 1)
    refusals.push_back(refusal("zero3-fetched-dtypes",
                               "parameters that ZeRO-3 fetches together by all-reduce are of several dtypes: 'expected "
                               "there to be only one unique element'",
                               "plans.zero3.stage3_use_all_reduce_for_fetch_params",
                               castable ? "leave it out, or set training.mixed_precision to bf16" : "leave it out"));
}

/// PEFT's wrapper of such a module passes on what its copy has, DeepSpeed's hooks among it, which then count gradients
/// on the copy that they were announced for on the wrapper (peft 0.18, utils/other.py; parameter_offload.py).
void check_saved_modules(const AdapterSpec& adapter, Diagnostics& refusals) {
  if (adapter.modules_to_save.empty()) return;
  refusals.push_back(
      refusal("zero3-modules-to-save",
              "ZeRO-3's hooks stop at modules that PEFT trains as copies: AttributeError, 'Linear' object has no "
              "attribute 'ds_grads_remaining'",
              "adapter.modules_to_save", "plan zero2 or fsdp2 instead"));
}

/// Mixtures are leaves: what is below them is gathered as a whole, and their gradients wait until the backward pass has
/// left them (z3_leaf_module.py; stage3.py, create_reduce_and_remove_grad_hooks).
void check_experts(const JobSpec& job, const StackProfile& stack, Diagnostics& refusals) {
  const bool always_stacks = design_of(job.model.family).biased_stacks;
  if (!stack.models.lists_experts(job.model.family))
    refusals.push_back(refusal("zero3-stacked-experts", "stacks of experts were not looked at under ZeRO-3",
                               "stack.transformers",
                               always_stacks ? "plan fsdp2" : "plan fsdp2, or transformers 4.57"));
  if (!design_of(job.model.family).leaf_under_zero3) return;  // their modules run in one order
  if (stack.models.loops_over_experts() && !stack.zero.finds_leaves())
    refusals.push_back(refusal("zero3-leaves",
                               "DeepSpeed before 0.18 knows no mixtures by itself, and stops where experts run in "
                               "another order",
                               "stack.deepspeed", "0.18 or newer"));
  const bool gradients_pass = !job.adapter || job.training.gradient_checkpointing != GradientCheckpointing::none ||
                              is_target(*job.adapter, "model.layers.0.self_attn.q_proj", false) ||
                              is_target(*job.adapter, "model.layers.0.self_attn.v_proj", false);
  if (!gradients_pass)
    refusals.push_back(refusal("zero3-leaf-input",
                               "no gradient passes through the first mixture, whose own gradients DeepSpeed then "
                               "reduces before they are there",
                               "adapter.target_modules", "target q_proj or v_proj too"));
}

}  // namespace

Weights persistent_weights(const Weights& weights, const Zero3Options& options) {
  Weights persistent;
  std::int64_t whole = 0;
  for (const ListedWeight& weight : weights) {
    if (weight.stored() > options.param_persistence_threshold) continue;
    if (weight.stored() > options.model_persistence_threshold - whole) continue;
    whole += weight.stored();
    persistent.push_back(weight);
  }
  return persistent;
}

Result<Zero3Options> zero3_options(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack) {
  Diagnostics refusals = check_zero(job, plan);
  check_options(plan, job.cluster, refusals);
  const std::int64_t secondary_ranks = std::max<std::int64_t>(plan.zero_hpz_partition_size, 1);
  if (job.cluster.world_size % secondary_ranks != 0)
    refusals.push_back(refusal("zero3-hpz",
                               std::to_string(job.cluster.world_size) + " ranks are not a whole number of groups of " +
                                   std::to_string(plan.zero_hpz_partition_size),
                               "plans.zero3.zero_hpz_partition_size", "give the GPUs of a node"));
  check_training(job, refusals);
  if (job.model.experts) check_experts(job, stack, refusals);
  if (job.adapter && job.adapter->use_dora && load_path(job, plan) == LoadPath::in_parts)
    refusals.push_back(refusal("zero3-dora-init",
                               "what DoRA gathers of a base that zero.Init has cut, for its first norms, is not worked "
                               "out yet",
                               "adapter.use_dora", "set model.loading to cpu, or plan fsdp2"));
  if (job.adapter) check_saved_modules(*job.adapter, refusals);
  if (has_errors(refusals)) return Unexpected{std::move(refusals)};

  Zero3Options options;
  const std::int64_t hidden = job.model.hidden_size;
  options.world_size = job.cluster.world_size;
  options.secondary_ranks = secondary_ranks;
  options.rank = rank;
  options.module_dtype = zero_module_dtype(job.training, plan);
  options.communication_data_type = zero_dtype(plan.communication_data_type);
  options.grad_accum_dtype = zero_dtype(plan.data_types.grad_accum_dtype);
  options.master_dtype = zero_master_dtype(plan);
  options.reduce_scatter = plan.reduce_scatter;
  options.prescale_gradients = plan.prescale_gradients;
  options.gradient_predivide_factor = plan.gradient_predivide_factor;
  options.fetches_by_all_reduce = plan.stage3_use_all_reduce_for_fetch_params;
  options.memory_efficient_linear = plan.memory_efficient_linear;
  options.loss_scale = zero_loss_scale(job.training, plan);
  options.gradient_clipping = zero_gradient_clipping(job.training, plan);
  options.norms_decay = stack.trainer.norms_decay(job.model.family);
  options.one_group = zero_has_own_optimizer(plan);
  options.has_kernel_flag = zero_has_kernel_flag(plan);
  options.makes_first_sums = zero_makes_first_sums(plan);
  options.outer_modules = job.adapter ? 2 : 1;
  // original_inv_freq is an attribute; in transformers 5 a buffer, too, which is cast (modeling_llama.py)
  const RotaryBehaviour rotary = stack.models.behaviour(job.model.family).rotary;
  options.keeps_first_frequencies = rotary.place == RotaryPlace::decoder && !rotary.keeps_original;
  options.reduce_bucket_size = zero_reduce_bucket_size(job.model, plan);
  // transformers integrations/deepspeed.py, trainer_config_finalize
  options.prefetch_bucket_size = plan.stage3_prefetch_bucket_size.value_or(hidden * hidden * 9 / 10);
  options.param_persistence_threshold = plan.stage3_param_persistence_threshold.value_or(10 * hidden);
  options.model_persistence_threshold = plan.stage3_model_persistence_threshold;
  options.max_live_parameters = plan.stage3_max_live_parameters;
  options.max_reuse_distance = plan.stage3_max_reuse_distance;
  options.sub_group_size = plan.sub_group_size;
  options.contiguous_gradients = plan.contiguous_gradients;
  options.overlap_comm = plan.overlap_comm;
  options.offload_param = plan.offload_param.device == OffloadDevice::cpu;
  options.offload_optimizer = plan.offload_optimizer.device == OffloadDevice::cpu;
  options.pin_param = plan.offload_param.pin_memory;
  options.pin_gradients = plan.offload_optimizer.pin_memory;
  check_persistent(job, options, stack, refusals);
  check_fetched(job, options, stack, refusals);
  if (has_errors(refusals)) return Unexpected{std::move(refusals)};
  return options;
}

}  // namespace qlp

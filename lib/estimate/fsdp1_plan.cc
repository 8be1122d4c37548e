#include "estimate/fsdp1_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/refusal.h"
#include "estimate/model_options.h"
#include "estimate/wrap_rules.h"
#include "model/target_matching.h"
#include "plan/fsdp1_setup.h"
#include "plan/loading.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

bool shards(const JobSpec& job, const Fsdp1& plan) { return fsdp1_groups(plan, job.cluster).shards; }

/// "plans.fsdp1-shard-grad-op.use_orig_params"
std::string key_path(const Fsdp1& plan, std::string_view key) {
  std::string strategy(name_of(plan.sharding_strategy));
  std::replace(strategy.begin(), strategy.end(), '_', '-');
  return "plans.fsdp1-" + strategy + "." + std::string(key);
}

void check_quantized(const JobSpec& job, Diagnostics& refusals) {
  const QuantizationSpec& quantization = *job.quantization;
  if (quantization.eight_bit()) return;  // not sharded at all (eight_bit_rules.h)
  if (!is_floating(quantization.quant_storage)) {
    refusals.push_back(refusal("fsdp1-integer-storage",
                               "FSDP1 cannot shard 4-bit weights that are stored as integers: it flattens floating "
                               "dtypes only",
                               "quantization.quant_storage", "set quant_storage to bfloat16, the dtype of the model"));
    return;
  }
  const DType others = quantization.prepare_kbit ? DType::float32 : job.dtype;
  if (others != quantization.quant_storage)
    refusals.push_back(refusal("fsdp1-mixed-dtypes",
                               "FSDP1 flattens the parameters of a layer into one tensor, and this layer holds " +
                                   std::string(name_of(quantization.quant_storage)) + " and " +
                                   std::string(name_of(others)),
                               "quantization.quant_storage",
                               quantization.prepare_kbit ? "leave prepare_kbit out under FSDP"
                                                         : "set quant_storage to the dtype of the model"));
  else if (!job.training.mixed_precision() && adapter_dtype(job) != quantization.quant_storage)
    refusals.push_back(refusal("fsdp1-adapter-dtype",
                               "the adapter is gathered as " + std::string(name_of(quantization.quant_storage)) +
                                   " but its input is cast to " + std::string(name_of(adapter_dtype(job))) +
                                   ": without mixed precision the product of the two fails",
                               "training.mixed_precision",
                               "set mixed_precision to bf16, or adapter.dtype to bfloat16"));
}

/// DoRA reads the weights of lora_A and lora_B outside of their units, and runs each unit twice, whose second gradient
/// is then never reduced; FSDP's clip_grad_norm_ takes gradients of one dtype only (peft dora.py, torch
/// fully_sharded_data_parallel.py).
void check_adapter(const JobSpec& job, const Fsdp1& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (job.adapter->use_dora && plan.use_orig_params && shards(job, plan))
    refusals.push_back(refusal("fsdp1-dora",
                               "DoRA reads whole weights of lora_A where FSDP1 with use_orig_params holds a shard",
                               "adapter.use_dora", "plan fsdp2 instead"));
  else if (job.adapter->use_dora && job.training.mixed_precision())
    refusals.push_back(refusal("fsdp1-dora",
                               "DoRA uses each FSDP1 unit twice: under mixed precision the second gradient is left in "
                               "16 bit and never reduced: clipping and torch's optimizers stop at it, those of "
                               "bitsandbytes train with it",
                               "adapter.use_dora", "plan fsdp2 instead"));
  if (stack.fsdp1.clips_one_dtype() && shards(job, plan) && !job.training.bf16 && job.training.max_grad_norm > 0 &&
      !job.adapter->modules_to_save.empty() && !job.adapter->dtype && adapter_dtype(job) != job.dtype)
    refusals.push_back(refusal("fsdp1-gradient-dtypes",
                               "FSDP1 clips gradients of one dtype only, and here modules_to_save has " +
                                   std::string(name_of(job.dtype)) + " and the adapter " +
                                   std::string(name_of(adapter_dtype(job))),
                               "adapter.modules_to_save", "set mixed_precision to bf16"));
}

/// What the check for changed parameters stops at (_flat_param.py, _writeback_orig_params): the frozen parameters that
/// PEFT leaves beside the adapters, and those of a flat parameter that accelerate has upcast. Where that is mended,
/// what becomes of a frozen weight that is shared (_use_unsharded_views).
void check_no_shard(const JobSpec& job, const Fsdp1& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (shards(job, plan) || !plan.use_orig_params) return;
  const std::string key = key_path(plan, "use_orig_params");
  const std::string hint = "set use_orig_params to false, or plan ddp";
  if (stack.fsdp1.flattens_written_back()) {
    if (job.adapter && job.model.tie_word_embeddings && !plan.cpu_offload)
      refusals.push_back(refusal("fsdp1-no-shard-tied",
                                 "FSDP1 with NO_SHARD and use_orig_params stops at frozen embeddings that the head "
                                 "shares: 'as_params=True type(prim_param)=<class 'torch.Tensor'>'",
                                 key, hint));
    return;
  }
  // What is float32 already is neither cast nor written back: under mixed precision units are read from 16-bit copies.
  const bool float32 = job.dtype == DType::float32 && !job.quantization;
  const bool reads_copies =
      float32 && job.training.mixed_precision() && (!job.adapter || adapter_dtype(job) == DType::float32);
  if (reads_copies || (!job.adapter && !job.training.mixed_precision())) return;
  refusals.push_back(refusal(
      "fsdp1-no-shard-writeback",
      std::string("FSDP1 with NO_SHARD and use_orig_params stops at the first forward pass ") +
          (job.adapter ? "of a model with frozen parameters" : "of 16-bit weights that accelerate turns into float32") +
          ": 'Cannot writeback when the parameter shape changes'",
      key, hint));
}

/// bitsandbytes puts a parameter of its own in the place of the one that FSDP has set (nn/modules.py,
/// fix_4bit_weight_quant_state_from_module). Where parameters stay whole between the passes, the check for changed ones
/// stops at it (_flat_param.py, _writeback_orig_params), under either kind of checkpointing (seen in torch 2.4, 2.8,
/// 2.14).
void check_kept_whole(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  if (!job.quantization || job.quantization->eight_bit() || !plan.use_orig_params || !shards(job, plan) ||
      reshards_after_forward(plan.sharding_strategy))
    return;
  refusals.push_back(refusal("fsdp1-4bit-kept-whole",
                             "FSDP1 that keeps parameters whole until the backward pass stops at 4-bit weights: 'FSDP "
                             "does not support changing the parameters between forward and backward'",
                             key_path(plan, "use_orig_params"),
                             "set use_orig_params to false, or plan fsdp1-full-shard"));
}

/// Without PEFT's policy frozen and trained parameters share a unit (_flat_param.py, _validate_tensors_to_flatten).
void check_mixed_units(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  if (!plan.auto_wrap_policy) return;
  const DType base = job.quantization ? job.quantization->quant_storage : job.dtype;
  const std::string key = key_path(plan, "auto_wrap_policy");
  if (*plan.auto_wrap_policy == WrapPolicy::size_based_wrap)
    refusals.push_back(refusal("fsdp1-size-based-adapter", "units by size are not planned for adapters", key,
                               "leave auto_wrap_policy out: the Trainer takes PEFT's policy"));
  else if (!plan.use_orig_params)
    refusals.push_back(refusal("fsdp1-mixed-unit",
                               "an FSDP1 unit holds frozen and trained parameters: 'Must flatten tensors with uniform "
                               "`requires_grad` when `use_orig_params=False`'",
                               key, "leave auto_wrap_policy out, or set use_orig_params to true"));
  else if (adapter_dtype(job) != base)
    refusals.push_back(refusal("fsdp1-mixed-dtypes",
                               "an FSDP1 unit holds " + std::string(name_of(base)) + " and " +
                                   std::string(name_of(adapter_dtype(job))) +
                                   ": 'Must flatten tensors with uniform dtype'",
                               key, "leave auto_wrap_policy out, or set adapter.dtype to that of the base"));
}

/// What PEFT trains beside the embedding is no module with a weight, which its policy looks for: it lies in the root,
/// beside what is frozen.
void check_root(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  const AdapterSpec& adapter = *job.adapter;
  const bool adapts = adapts_embedding(adapter);
  if (!adapts && adapter.trainable_token_indices.empty()) return;
  const std::string key = adapts ? "adapter.target_modules" : "adapter.trainable_token_indices";
  const DType base = job.quantization && job.quantization->prepare_kbit ? DType::float32 : job.dtype;
  if (adapter_dtype(job) != base)
    refusals.push_back(refusal("fsdp1-mixed-dtypes",
                               "what is trained beside the embedding lies in one FSDP1 unit with it: 'Must flatten "
                               "tensors with uniform dtype', and these are " +
                                   std::string(name_of(base)) + " and " + std::string(name_of(adapter_dtype(job))),
                               key, "set adapter.dtype to that of the base"));
  else if (!plan.use_orig_params)
    refusals.push_back(refusal("fsdp1-mixed-unit",
                               "what is trained beside the embedding lies in one FSDP1 unit with it: 'Must flatten "
                               "tensors with uniform `requires_grad` when `use_orig_params=False`'",
                               key, "set use_orig_params to true, or leave the embedding out"));
}

/// Gradients on the host are replaced by the next ones, not added to (_flat_param.py, prepare_gradient_for_backward).
void check_accumulation(const JobSpec& job, const Fsdp1& plan, const StackProfile& stack, Diagnostics& refusals) {
  const TrainingSpec& training = job.training;
  if (!plan.cpu_offload || training.gradient_accumulation_steps == 1) return;
  if (training.sync_each_batch && stack.trainer.honours_sync_each_batch())
    refusals.push_back(refusal("fsdp1-offload-accumulation",
                               "FSDP1 with offload adds up gradients under no_sync only: reduced after every micro "
                               "step, all but those of the last are lost",
                               "training.sync_each_batch", "set sync_each_batch to false"));
}

/// Groups of ranks are made by node (torch distributed_c10d.py, new_subgroups).
void check_nodes(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  const ClusterSpec& cluster = job.cluster;
  if (!is_hybrid(plan.sharding_strategy) || cluster.world_size == 1) return;
  if (cluster.gpus_per_node == 1)
    refusals.push_back(refusal("fsdp1-hybrid-one-gpu-nodes",
                               "hybrid sharding with one GPU per node shards nothing, and FSDP then sums no gradients "
                               "over the nodes: the replicas would drift apart",
                               "cluster.gpus_per_node", "plan ddp or fsdp1-full-shard instead"));
  else if (cluster.world_size % std::min(cluster.gpus_per_node, cluster.world_size) != 0)
    refusals.push_back(refusal("fsdp1-hybrid-uneven-nodes",
                               "hybrid sharding needs whole nodes: 'The world size must be divisible by group_size'",
                               "cluster.world_size", "make world_size a multiple of gpus_per_node"));
}

}  // namespace

Result<Fsdp1Options> fsdp1_options(const JobSpec& job, const Fsdp1& plan, std::int64_t rank,
                                   const StackProfile& stack) {
  Diagnostics refusals;
  if (job.quantization) check_quantized(job, refusals);
  check_no_shard(job, plan, stack, refusals);
  check_kept_whole(job, plan, refusals);
  check_nodes(job, plan, refusals);
  check_accumulation(job, plan, stack, refusals);
  if (job.training.saves_model && !shards(job, plan))
    refusals.push_back(refusal("fsdp1-save-no-shard",
                               "FSDP1 that does not shard cannot offload its state dict: 'offload_to_cpu=True and "
                               "NO_SHARD is not supported yet'",
                               "training.save", "plan ddp, or leave save out"));
  const bool by_class =
      plan.auto_wrap_policy.value_or(WrapPolicy::transformer_based_wrap) == WrapPolicy::transformer_based_wrap;
  check_wrapped_classes(job, plan.transformer_cls_names_to_wrap, by_class,
                        key_path(plan, "transformer_cls_names_to_wrap"), refusals);
  if (job.adapter) check_adapter(job, plan, stack, refusals);
  if (job.adapter) check_mixed_units(job, plan, refusals);
  if (job.adapter) check_root(job, plan, refusals);
  if (has_errors(refusals)) return Unexpected{std::move(refusals)};

  const Fsdp1Groups groups = fsdp1_groups(plan, job.cluster);
  Fsdp1Options options;
  options.shards = groups.shards;
  options.reshards_after_forward = reshards_after_forward(plan.sharding_strategy);
  options.hybrid = groups.shards && is_hybrid(plan.sharding_strategy);
  options.use_orig_params = plan.use_orig_params;
  options.offloads = plan.cpu_offload;
  options.backward_prefetch = plan.backward_prefetch;
  options.forward_prefetch = plan.forward_prefetch;
  options.limit_all_gathers = plan.limit_all_gathers;
  options.world_size = groups.ranks;
  options.rank = rank % groups.ranks;
  options.replicas = groups.replicas;
  options.mixed_precision = fsdp1_mixed_precision(plan, job);
  options.upcasts_trained = job.training.mixed_precision();
  options.outputs_to_fp32 = job.training.mixed_precision();
  options.wraps_trained_leaves = job.adapter && !plan.auto_wrap_policy;
  options.wrap_policy = plan.auto_wrap_policy.value_or(WrapPolicy::transformer_based_wrap);
  options.wrapped = wrapped_kinds(job, plan.transformer_cls_names_to_wrap);
  options.min_num_params = plan.min_num_params;
  options.syncs_module_states = loading_under(job, plan) == Loading::rank0;
  options.keeps_zero_scalar = stack.fsdp1.keeps_zero_scalar();
  options.chunks_stay = plan.cpu_offload && stack.fsdp1.offload_adds_cpu_group();
  options.records_collectives = stack.torch.collectives_have_own_stream();
  return options;
}

}  // namespace qlp

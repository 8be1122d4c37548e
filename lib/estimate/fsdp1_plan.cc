#include "estimate/fsdp1_plan.h"

#include <string>
#include <utility>

#include "base/refusal.h"

namespace qlp {
namespace {

/// One rank alone is not sharded: FSDP switches to NO_SHARD (torch _init_utils.py, _init_core_state).
bool shards(const JobSpec& job, const Fsdp1& plan) {
  return plan.sharding_strategy == ShardingStrategy::full_shard && job.cluster.world_size > 1;
}

/// The dtype in which adapters are trained (peft tuners_utils.py, cast_adapter_dtype; TRL's cast).
DType adapter_dtype(const JobSpec& job) {
  if (job.adapter->dtype) return *job.adapter->dtype;
  return job.adapter->autocast_adapter_dtype ? DType::float32 : job.dtype;
}

void check_quantized(const JobSpec& job, Diagnostics& refusals) {
  const QuantizationSpec& quantization = *job.quantization;
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
void check_adapter(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  if (job.adapter->use_dora && plan.use_orig_params && shards(job, plan))
    refusals.push_back(refusal("fsdp1-dora",
                               "DoRA reads whole weights of lora_A where FSDP1 with use_orig_params holds a shard",
                               "adapter.use_dora", "plan fsdp2 instead"));
  else if (job.adapter->use_dora && job.training.mixed_precision())
    refusals.push_back(refusal("fsdp1-dora",
                               "DoRA uses each FSDP1 unit twice: under mixed precision the second gradient is left in "
                               "16 bit, at which clipping and the optimizer stop",
                               "adapter.use_dora", "plan fsdp2 instead"));
  if (shards(job, plan) && !job.training.bf16 && job.training.max_grad_norm > 0 &&
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
  const std::string key_path = plan.sharding_strategy == ShardingStrategy::no_shard
                                   ? "plans.fsdp1-no-shard.use_orig_params"
                                   : "plans.fsdp1-full-shard.use_orig_params";
  const std::string hint = "set use_orig_params to false, or plan ddp";
  if (stack.fsdp1_flattens_written_back()) {
    if (job.adapter && job.model.tie_word_embeddings)
      refusals.push_back(refusal("fsdp1-no-shard-tied",
                                 "FSDP1 with NO_SHARD and use_orig_params stops at frozen embeddings that the head "
                                 "shares: 'as_params=True type(prim_param)=<class 'torch.Tensor'>'",
                                 key_path, hint));
    return;
  }
  const bool upcast = job.training.mixed_precision() && job.dtype != DType::float32;
  if (!job.adapter && !upcast) return;
  refusals.push_back(refusal(
      "fsdp1-no-shard-writeback",
      std::string("FSDP1 with NO_SHARD and use_orig_params stops at the first forward pass ") +
          (job.adapter ? "of a model with frozen parameters" : "of 16-bit weights that accelerate turns into float32") +
          ": 'Cannot writeback when the parameter shape changes'",
      key_path, hint));
}

}  // namespace

Result<Fsdp1Options> fsdp1_options(const JobSpec& job, const Fsdp1& plan, std::int64_t rank,
                                   const StackProfile& stack) {
  Diagnostics refusals;
  if (job.quantization) check_quantized(job, refusals);
  check_no_shard(job, plan, stack, refusals);
  if (job.adapter) check_adapter(job, plan, refusals);
  if (has_errors(refusals)) return Unexpected{std::move(refusals)};

  Fsdp1Options options;
  options.shards = shards(job, plan);
  options.use_orig_params = plan.use_orig_params;
  options.world_size = job.cluster.world_size;
  options.rank = rank;
  // accelerate dataclasses.py, set_mixed_precision; transformers trainer.py, _fsdp_qlora_plugin_updates
  std::optional<DType> dtype;
  if (job.training.mixed_precision()) dtype = job.training.autocast_dtype();
  if (job.quantization) dtype = job.quantization->quant_storage;
  options.mixed_precision = {.param_dtype = dtype, .reduce_dtype = dtype, .buffer_dtype = dtype};
  options.upcasts_trained = job.training.mixed_precision();
  options.outputs_to_fp32 = job.training.mixed_precision();
  options.wraps_trained_leaves = job.adapter.has_value();
  options.records_collectives = stack.collectives_have_own_stream();
  return options;
}

}  // namespace qlp

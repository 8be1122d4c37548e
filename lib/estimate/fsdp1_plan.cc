#include "estimate/fsdp1_plan.h"

#include <string>
#include <utility>

namespace qlp {
namespace {

Diagnostic refusal(std::string code, std::string message, std::string key_path, std::string hint) {
  return {
      .code = std::move(code), .message = std::move(message), .key_path = std::move(key_path), .hint = std::move(hint)};
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
  else if (!job.training.bf16 && adapter_dtype(job) != quantization.quant_storage)
    refusals.push_back(refusal("fsdp1-adapter-dtype",
                               "the adapter is gathered as " + std::string(name_of(quantization.quant_storage)) +
                                   " but its input is cast to " + std::string(name_of(adapter_dtype(job))) +
                                   ": without mixed precision the product of the two fails",
                               "training.mixed_precision",
                               "set mixed_precision to bf16, or adapter.dtype to bfloat16"));
}

/// What the check for changed parameters stops at (_flat_param.py, _writeback_orig_params; torch 2.4 to 2.14): the
/// frozen parameters that PEFT leaves beside the adapters, and those of a flat parameter that accelerate has upcast.
void check_no_shard(const JobSpec& job, const Fsdp1& plan, Diagnostics& refusals) {
  if (plan.sharding_strategy != ShardingStrategy::no_shard || !plan.use_orig_params) return;
  const bool upcast = job.training.bf16 && job.dtype != DType::float32;
  if (!job.adapter && !upcast) return;
  refusals.push_back(refusal(
      "fsdp1-no-shard-writeback",
      std::string("FSDP1 with NO_SHARD and use_orig_params stops at the first forward pass ") +
          (job.adapter ? "of a model with frozen parameters" : "of 16-bit weights that accelerate turns into float32") +
          ": 'Cannot writeback when the parameter shape changes'",
      "plans.fsdp1-no-shard.use_orig_params", "set use_orig_params to false, or plan ddp"));
}

}  // namespace

Result<Fsdp1Options> fsdp1_options(const JobSpec& job, const Fsdp1& plan, std::int64_t rank,
                                   const StackProfile& stack) {
  Diagnostics refusals;
  if (job.quantization) check_quantized(job, refusals);
  check_no_shard(job, plan, refusals);
  if (job.adapter && job.adapter->use_dora)
    refusals.push_back(
        refusal("fsdp1-dora", "DoRA under FSDP1 is not worked out yet", "adapter.use_dora", "plan fsdp2 instead"));
  if (has_errors(refusals)) return Unexpected{std::move(refusals)};

  Fsdp1Options options;
  options.shards = plan.sharding_strategy == ShardingStrategy::full_shard;
  options.use_orig_params = plan.use_orig_params;
  options.world_size = job.cluster.world_size;
  options.rank = rank;
  // accelerate dataclasses.py, set_mixed_precision; transformers trainer.py, _fsdp_qlora_plugin_updates
  std::optional<DType> dtype;
  if (job.training.bf16) dtype = DType::bfloat16;
  if (job.quantization) dtype = job.quantization->quant_storage;
  options.mixed_precision = {.param_dtype = dtype, .reduce_dtype = dtype, .buffer_dtype = dtype};
  options.upcasts_trained = job.training.bf16;
  options.outputs_to_fp32 = job.training.bf16;
  options.wraps_trained_leaves = job.adapter.has_value();
  options.records_collectives = stack.collectives_have_own_stream();
  return options;
}

}  // namespace qlp

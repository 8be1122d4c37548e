#include "estimate/fsdp2_plan.h"

#include <string>

#include "base/refusal.h"
#include "model/target_matching.h"
#include "plan/loading.h"

namespace qlp {
namespace {

bool has_integer_storage(const JobSpec& job) {
  return job.quantization && !is_floating(job.quantization->quant_storage);
}

void check_base(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack, Diagnostics& refusals) {
  if (has_integer_storage(job) && !stack.fsdp2_ignores_integer_storage())
    refusals.push_back(refusal("fsdp2-integer-storage",
                               "fully_shard cannot shard 4-bit weights that are stored as integers: a parameter of an "
                               "integer dtype cannot be made anew as one that requires a gradient",
                               "quantization.quant_storage", "set quant_storage to bfloat16"));
  else if (has_integer_storage(job) && !plan.local_base)
    refusals.push_back(
        refusal("fsdp2-integer-storage",
                "accelerate leaves 4-bit weights that are stored as integers out of sharding: every rank "
                "keeps them whole",
                "quantization.quant_storage",
                "the plan fsdp2-local-base is what runs; set quant_storage to bfloat16 to shard them"));
  if (plan.local_base && !has_integer_storage(job))
    refusals.push_back(refusal("fsdp2-local-base-floats",
                               "accelerate keeps only 4-bit weights that are stored as integers whole on every rank",
                               "quantization.quant_storage",
                               job.quantization ? "set quant_storage to uint8" : "take the plan fsdp2"));
}

/// Tied tables of which one is trained as a copy: the original is in the unit of the embedding and in that of the head.
bool shares_across_units(const JobSpec& job, const StackProfile& stack) {
  return job.model.tie_word_embeddings && job.adapter && stack.fsdp2_splits_root() &&
         (is_saved_module(*job.adapter, "model.embed_tokens") || is_saved_module(*job.adapter, "lm_head"));
}

void check_stack(const JobSpec& job, const StackProfile& stack, Diagnostics& refusals) {
  if (shares_across_units(job, stack) && stack.fsdp2_refuses_shared())
    refusals.push_back(refusal("fsdp2-shared-parameter",
                               "the tied embedding is in two FSDP2 groups once a copy of it is trained, which torch "
                               "refuses",
                               "adapter.modules_to_save",
                               "train the embedding with LoRA, or untie it from the head in the checkpoint"));
  if (job.training.loss == Loss::liger)
    refusals.push_back(refusal("fsdp2-liger",
                               "Liger's loss reads the weight of the head without calling it, so that FSDP2 does not "
                               "gather it in time",
                               "training.loss", "set loss to plain, or take an fsdp1 plan"));
  if (job.training.fp16)
    refusals.push_back(refusal("fsdp2-fp16", "loss scaling with float16 under FSDP2 is not worked out yet",
                               "training.mixed_precision", "set it to bf16, or take an fsdp1 plan"));
  const bool casts_in_recomputation = stack.fully_shard().casts_everywhere || stack.layers_checkpoint_forward();
  if (job.model.family == Family::olmo2 && job.training.bf16 && !casts_in_recomputation &&
      job.training.gradient_checkpointing == GradientCheckpointing::nonreentrant)
    refusals.push_back(refusal("fsdp2-recomputed-dtype",
                               "checkpointing stops: the recomputed rotary tables of OLMo 2 are float32 where FSDP2 "
                               "had cast them to bfloat16 in the forward pass",
                               "training.gradient_checkpointing",
                               "set use_reentrant to true, or leave checkpointing out"));
  const bool adapters_differ =
      job.adapter &&
      job.adapter->dtype.value_or(job.adapter->autocast_adapter_dtype ? DType::float32 : job.dtype) != job.dtype;
  const bool all_float32 = job.training.bf16 && stack.fsdp2_upcast() == Fsdp2Upcast::whole_model;
  if (adapters_differ && !all_float32 && !stack.fsdp2_mixes_frozen_dtypes())
    refusals.push_back(refusal("fsdp2-mixed-dtypes",
                               "FSDP2 before torch 2.8 wants one dtype in a group, and adapters are not in that of the "
                               "base",
                               "adapter.autocast_adapter_dtype", "set autocast_adapter_dtype to false"));
}

MixedPrecisionPolicy precision(const JobSpec& job) {
  if (!job.training.bf16) return {};
  return {.param_dtype = DType::bfloat16, .reduce_dtype = DType::bfloat16, .output_dtype = DType::bfloat16};
}

}  // namespace

Result<Fsdp2Setup> fsdp2_setup(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack) {
  Diagnostics refusals;
  if (!stack.has_fsdp2())
    refusals.push_back(refusal("fsdp2-not-in-stack", "FSDP2 needs torch 2.6 and accelerate 1.6 or newer", "stack",
                               "take an fsdp1 plan, or a newer stack"));
  check_base(job, plan, stack, refusals);
  check_stack(job, stack, refusals);
  if (!refusals.empty()) return Unexpected{refusals};

  Fsdp2Setup setup;
  setup.options = {.world_size = job.cluster.world_size,
                   .rank = rank,
                   .precision = precision(job),
                   .behaviour = stack.fully_shard()};
  Fsdp2Upcast upcast = job.training.bf16 ? stack.fsdp2_upcast() : Fsdp2Upcast::none;
  if (upcast == Fsdp2Upcast::trained_parameters && job.quantization) upcast = Fsdp2Upcast::none;
  if (upcast == Fsdp2Upcast::whole_model && job.dtype == DType::float32) upcast = Fsdp2Upcast::none;
  setup.preparation = {
      .upcast = upcast,
      .reshard_after_forward = plan.reshard_after_forward,
      .copies_in_optimizer = !stack.fsdp2_drops_optimizer_parameters(),
      .splits_root = stack.fsdp2_splits_root(),
      .finds_final_norm = !job.adapter,
      .loads_state_dict = load_path(job, plan) == LoadPath::host && loading_under(job.loading, plan) == Loading::rank0,
      .ignores_quantized = plan.local_base};
  return setup;
}

}  // namespace qlp

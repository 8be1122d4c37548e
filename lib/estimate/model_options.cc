#include "estimate/model_options.h"

#include "estimate/parallel_rules.h"
#include "model/family_design.h"

namespace qlp {

bool liger_knows(Family family, const StackVersions& stack) {
  const LigerDesign::Since since = design_of(family).liger.since;
  const bool recent = stack.transformers >= Version{5, 0, 0};  // with which 0.8.5 goes, with 4 0.6.2
  return since == LigerDesign::Since::v0_6 || (since == LigerDesign::Since::v0_8 && recent);
}

bool uses_liger(const JobSpec& job) {
  return job.training.loss == Loss::liger && liger_knows(job.model.family, job.stack);
}

DType adapter_dtype(const JobSpec& job) {
  if (job.adapter->dtype) return *job.adapter->dtype;
  return job.adapter->autocast_adapter_dtype ? DType::float32 : job.dtype;
}

ModelBehaviour model_behaviour(const JobSpec& job, const StackProfile& stack) {
  ModelBehaviour behaviour = stack.models.behaviour(job.model.family);
  behaviour.item_count_on_host = !stack.trainer.counts_items_on_device();
  if (!uses_liger(job)) return behaviour;
  behaviour.liger = stack.models.liger();
  if (design_of(job.model.family).liger.norms_heads) behaviour.liger->replaces_head_norms = true;
  return behaviour;
}

BuildOptions build_options(const JobSpec& job, std::int64_t rank, const StackProfile& stack) {
  BuildOptions options;
  options.slice = slice_of(job, rank);
  options.quantization = job.quantization;
  options.adapter = job.adapter;
  options.attention = static_cast<AttentionKernel>(job.training.attention);
  options.adapter_behaviour = stack.peft.behaviour();
  options.model_behaviour = model_behaviour(job, stack);
  options.quant_behaviour = stack.quant;
  return options;
}

}  // namespace qlp

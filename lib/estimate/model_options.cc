#include "estimate/model_options.h"

#include "estimate/parallel_rules.h"

namespace qlp {

ModelBehaviour model_behaviour(const JobSpec& job, const StackProfile& stack) {
  ModelBehaviour behaviour = stack.model(job.model.family);
  if (job.training.loss == Loss::liger) behaviour.liger = stack.liger();
  return behaviour;
}

BuildOptions build_options(const JobSpec& job, std::int64_t rank, const StackProfile& stack) {
  BuildOptions options;
  options.slice = slice_of(job, rank);
  options.quantization = job.quantization;
  options.adapter = job.adapter;
  options.attention = static_cast<AttentionKernel>(job.training.attention);
  options.adapter_behaviour = stack.adapter();
  options.model_behaviour = model_behaviour(job, stack);
  options.quant_behaviour = stack.quant();
  return options;
}

}  // namespace qlp

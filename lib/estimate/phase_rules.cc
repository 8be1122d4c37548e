#include "estimate/phase_rules.h"

#include "base/refusal.h"

namespace qlp {

Diagnostics check_phases(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  const TrainingSpec& training = job.training;
  if (training.evaluation && training.loss == Loss::liger)
    refusals.push_back(refusal("liger-evaluation", "evaluation with Liger's loss is not worked out yet",
                               "training.evaluation", "leave evaluation out, or set loss to plain"));
  const auto* zero = std::get_if<Zero>(&plan);
  if (zero && zero->stage == 3 && training.saves_model && !zero->stage3_gather_16bit_weights_on_model_save)
    refusals.push_back(
        refusal("zero3-own-checkpoint",
                "save_model() then writes DeepSpeed's own checkpoint, optimizer states and all, which is "
                "not worked out yet",
                "training.save", "set stage3_gather_16bit_weights_on_model_save to true"));
  return refusals;
}

}  // namespace qlp

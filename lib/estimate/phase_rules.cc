#include "estimate/phase_rules.h"

#include "base/refusal.h"

namespace qlp {

Diagnostics check_phases(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  const TrainingSpec& training = job.training;
  if (training.evaluation && training.loss == Loss::liger)
    refusals.push_back(refusal("liger-evaluation", "evaluation with Liger's loss is not worked out yet",
                               "training.evaluation", "leave evaluation out, or set loss to plain"));
  if (std::holds_alternative<Zero>(plan) && training.evaluation)
    refusals.push_back(refusal("zero-evaluation", "evaluation under DeepSpeed is not worked out yet",
                               "training.evaluation", "leave evaluation out"));
  if (std::holds_alternative<Zero>(plan) && training.saves_model)
    refusals.push_back(
        refusal("zero-save", "saving under DeepSpeed is not worked out yet", "training.save", "leave save out"));
  return refusals;
}

}  // namespace qlp

#include "estimate/loss_rules.h"

#include <string>
#include <variant>

#include "base/refusal.h"
#include "estimate/model_options.h"
#include "model/family_design.h"
#include "model/target_matching.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

/// What is trained as a copy is a unit of its own there, which Liger calls by a function of its own.
bool wraps_copies(const ShardingPlan& plan) {
  return std::holds_alternative<Fsdp1>(plan) || std::holds_alternative<Fsdp2>(plan);
}

}  // namespace

Diagnostics check_loss(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  const Loss loss = job.training.loss;
  if (loss == Loss::chunked)
    refusals.push_back(refusal("loss-chunked",
                               "the loss in chunks differs with each release of TRL and is not worked out yet",
                               "training.loss", "use plain or liger"));
  if (!uses_liger(job)) return refusals;
  if (!design_of(job.model.family).liger.planned)
    refusals.push_back(refusal(
        "loss-liger-family",
        "what Liger's kernels replace in the family " + std::string(name_of(job.model.family)) + " is not planned yet",
        "training.loss", "use plain"));
  if (wraps_copies(plan) && job.adapter && is_saved_module(*job.adapter, "lm_head"))
    refusals.push_back(refusal("loss-liger-saved-head",
                               "what Liger's loss does with a head that is a copy under FSDP is not worked out yet",
                               "training.loss", "leave lm_head out of modules_to_save, or use plain"));
  if (job.adapter && is_target(*job.adapter, "lm_head", true))
    refusals.push_back(refusal("loss-liger-adapted-head",
                               "Liger's fused loss reads the weight of lm_head and passes by its adapter, which would "
                               "get no gradient",
                               "training.loss", "leave lm_head out of target_modules, or use plain"));
  return refusals;
}

}  // namespace qlp

#include "estimate/loss_rules.h"

#include <string>
#include <variant>

#include "base/refusal.h"
#include "model/target_matching.h"

namespace qlp {
namespace {

bool shards_parameters(const ShardingPlan& plan) {
  const auto* zero = std::get_if<Zero>(&plan);
  return zero ? zero->stage == 3 : !std::holds_alternative<Single>(plan) && !std::holds_alternative<Ddp>(plan);
}

}  // namespace

Diagnostics check_loss(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics refusals;
  const Loss loss = job.training.loss;
  if (loss == Loss::chunked)
    refusals.push_back(refusal("loss-chunked",
                               "the loss in chunks differs with each release of TRL and is not worked out yet",
                               "training.loss", "use plain or liger"));
  if (loss != Loss::liger) return refusals;
  if (shards_parameters(plan))
    refusals.push_back(refusal("loss-liger-sharded", "Liger's kernels under a sharded model are not worked out yet",
                               "training.loss", "use plain, or plan single or ddp"));
  if (job.adapter && is_target(*job.adapter, "lm_head", true))
    refusals.push_back(refusal("loss-liger-adapted-head",
                               "Liger's fused loss reads the weight of lm_head and passes by its adapter, which would "
                               "get no gradient",
                               "training.loss", "leave lm_head out of target_modules, or use plain"));
  return refusals;
}

}  // namespace qlp

// The sharding runtime of a plan, set up as accelerate and the Trainer set it up for a job.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/sharding_runtime.h"
#include "step/trainer.h"

namespace qlp {

/// Errors: what the runtime or accelerate refuses, with the reason and the fix.
Result<std::unique_ptr<ShardingRuntime>> make_runtime(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank,
                                                      const StackProfile& stack);

/// When torch's Adagrad gets its sums.
AdagradStart adagrad_start(const JobSpec& job, const ShardingPlan& plan);

/// What the Trainer does differently under this plan (autocast, conversion of outputs, where hooks stand).
void adjust_to_plan(TrainerOptions& options, const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

}  // namespace qlp

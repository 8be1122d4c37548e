// Optimizers that the libraries of a job refuse, or that stop at its first step.
#pragma once

#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the optimizer can step what the plan gives it.
Diagnostics check_optimizer(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

/// What runs, and may not be what was meant.
Diagnostics optimizer_warnings(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

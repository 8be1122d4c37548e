// What GaLore and APOLLO stop at, which need whole gradients of the shape of their parameters.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/sharding_plan.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals of a job that trains with one of them; none of others.
Diagnostics check_low_rank(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

}  // namespace qlp

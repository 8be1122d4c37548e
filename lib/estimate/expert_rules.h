// Which mixtures of experts can be worked out for a job, and what a reader should know of them.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the experts of this job can be worked out, or where there are none.
Diagnostics check_experts(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

Diagnostics expert_warnings(const JobSpec& job);

}  // namespace qlp

// Which mixtures of experts can be worked out for a job, and what a reader should know of them.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the experts of this job can be worked out, or where there are none.
Diagnostics check_experts(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

/// What is planned otherwise than a real run may turn out: how routers spread tokens, what 4-bit types reach.
Diagnostics expert_warnings(const JobSpec& job);

}  // namespace qlp

// Which mixes of precision the libraries refuse.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where this job's precision works under this plan.
Diagnostics check_precision(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

}  // namespace qlp

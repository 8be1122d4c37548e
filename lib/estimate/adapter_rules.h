// What PEFT, or a plan, refuses of an adapter.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/sharding_plan.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Why PEFT of this stack does not take the job's adapter, or this plan does not train it.
Diagnostics check_adapter(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

}  // namespace qlp

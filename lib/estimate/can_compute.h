// What a run that computes can do, and what it refuses ahead.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// Why this job under this plan can only be predicted so far; nothing: it computes.
Diagnostics check_can_compute(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

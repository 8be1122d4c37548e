// Which losses can be worked out for a job.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"

namespace qlp {

/// Refusals; empty where the loss of this job can be worked out under this plan.
Diagnostics check_loss(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

// What is not worked out of the phases after training, or what the libraries refuse there.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"

namespace qlp {

/// Refusals; empty if the plan can evaluate and save as the job asks.
Diagnostics check_phases(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

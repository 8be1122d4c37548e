// Which jobs with 8-bit weights (bitsandbytes LLM.int8) can be worked out, and what a reader should know of them.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"

namespace qlp {

/// Refusals; empty where the job can be worked out, or has no 8-bit weights.
Diagnostics check_eight_bit(const JobSpec& job, const ShardingPlan& plan);

/// What depends on values is taken to be so and so.
Diagnostics eight_bit_notes(const JobSpec& job);

}  // namespace qlp

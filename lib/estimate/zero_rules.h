// Which jobs of a ZeRO plan DeepSpeed, transformers or accelerate refuse, and what they let run to no good end.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"

namespace qlp {

/// What all stages refuse, in the words of the library that does.
Diagnostics check_zero(const JobSpec& job, const Zero& plan);

/// What they let run, to no good end.
Diagnostics zero_warnings(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

// Which attention can be worked out for a job, and where what runs may be another kernel than the one planned.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the attention of this job can be worked out.
Diagnostics check_attention(const JobSpec& job, const StackProfile& stack);

/// What a reader should know of the figures; empty where the kernel that is planned is the one that runs.
Diagnostics attention_warnings(const JobSpec& job, const StackProfile& stack);

}  // namespace qlp

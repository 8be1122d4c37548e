// What torch's Muon stops at.
#pragma once

#include <string_view>

#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals of a job that trains with it; `key`: of its name.
Diagnostics check_muon(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, std::string_view key);

}  // namespace qlp

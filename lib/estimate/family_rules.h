// Whether the stack has the model at all.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the stack's transformers knows the family.
Diagnostics check_family(const JobSpec& job, const StackProfile& stack);

}  // namespace qlp

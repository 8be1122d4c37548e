// What accelerate, transformers and DeepSpeed make of a zero3 plan, and which jobs they refuse.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/zero3_options.h"

namespace qlp {

/// Errors: what DeepSpeed or PEFT would stop at, with the fix, and options that are not worked out.
Result<Zero3Options> zero3_options(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

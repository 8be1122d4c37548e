// What accelerate, transformers and DeepSpeed make of a zero3 plan, and which jobs they refuse.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "estimate/held_weights.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/zero3_options.h"

namespace qlp {

/// Those of the listed weights, in the order of the module, that are whole between steps (parameter_offload.py,
/// mark_persistent_parameters).
Weights persistent_weights(const Weights& weights, const Zero3Options& options);

/// Errors: what DeepSpeed or PEFT would stop at, with the fix, and options that are not worked out.
Result<Zero3Options> zero3_options(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

// What accelerate and the Trainer make of an fsdp1 plan, and which jobs FullyShardedDataParallel refuses.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/fsdp1_options.h"

namespace qlp {

/// Errors: what torch, PEFT or bitsandbytes would stop at, with the fix.
Result<Fsdp1Options> fsdp1_options(const JobSpec& job, const Fsdp1& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

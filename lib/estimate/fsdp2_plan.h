// What accelerate and the Trainer make of an fsdp2 plan, and which jobs they or fully_shard refuse.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/fsdp2_options.h"

namespace qlp {

struct Fsdp2Setup {
  Fsdp2Options options;
  Fsdp2Preparation preparation;
};

/// Errors: what torch, accelerate or checkpointing would stop at, with the fix.
Result<Fsdp2Setup> fsdp2_setup(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

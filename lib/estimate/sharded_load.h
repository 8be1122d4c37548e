// FSDP2 where transformers itself cuts the model as it loads it: beside tensor or expert parallelism
// (from_pretrained with a DistributedConfig; distributed/configuration_utils.py, mixin.py, fsdp.py, 5.24).
#pragma once

#include "estimate/fsdp2_plan.h"

namespace qlp {

/// Errors: what DistributedConfig cannot say, and what transformers or PEFT would stop at.
Result<Fsdp2Setup> setup_at_load(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

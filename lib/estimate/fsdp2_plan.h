// What accelerate and the Trainer make of an fsdp2 plan, and which jobs they or fully_shard refuse.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/fsdp2_options.h"
#include "shard/rows.h"

namespace qlp {

struct Fsdp2Setup {
  Fsdp2Options options;
  Fsdp2Preparation preparation;
  Fsdp2Options of_experts = {};  ///< where expert parallelism spreads them
  bool keeps_first_sums = false;
};

/// Ranks over which a plan cuts parameters: all of the job, or those of a hybrid plan's shard dimension.
std::int64_t shard_ranks(const JobSpec& job, const Fsdp2& plan);

/// Where a rank stands among those.
std::int64_t shard_place(const JobSpec& job, const Fsdp2& plan, std::int64_t rank);

/// Ranks that hold the same experts, where several share those of a layer, and cut them further (efsdp of transformers
/// distributed/utils.py, TransformersDeviceMesh, 5.24); and where a rank stands among them.
RankShare expert_share(const JobSpec& job, const Fsdp2& plan, std::int64_t rank);

/// The MixedPrecisionPolicy of a plan.
MixedPrecisionPolicy precision_of(const JobSpec& job, const Fsdp2& plan);

/// What accelerate casts before or after it cuts parameters.
Fsdp2Upcast upcast_of(const JobSpec& job, const Fsdp2& plan, const StackProfile& stack);

/// Units that are resharded after the forward pass: the decoder layers; the embedding and the root by version.
std::int64_t resharded_units(const JobSpec& job, const Fsdp2& plan);

/// Rank 0 has read the weights, and the others get their parts from its state dict (accelerate fsdp_utils.py,
/// fsdp2_load_full_state_dict).
bool loads_state_dict(const JobSpec& job, const Fsdp2& plan);

/// torch's Adagrad makes its sums for the parameters as they are before accelerate cuts them, under which it goes on to
/// hold both.
bool keeps_first_sums(const JobSpec& job, const Fsdp2& plan);

/// Errors: what torch, accelerate or checkpointing would stop at, with the fix.
Result<Fsdp2Setup> fsdp2_setup(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

// Which parallelism within a replica of the model can be worked out, and who runs it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostic.h"
#include "model/slice.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty where the job's mesh can be worked out under this plan.
Diagnostics check_mesh(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

/// How many ranks have the same layers; stages are so far apart.
std::int64_t ranks_of_stage(const JobSpec& job);

/// Of the hidden states that go from stage to stage: that of the residual stream, or in which FSDP2 hands them on.
DType dtype_between_stages(const JobSpec& job, const ShardingPlan& plan);

/// What a rank holds of the model.
ModelSlice slice_of(const JobSpec& job, std::int64_t rank);

/// One rank of each kind that holds or does something else than the others: the first of every stage; all that share a
/// sequence.
std::vector<std::int64_t> distinct_ranks(const JobSpec& job, const ShardingPlan& plan);

/// Who runs it, where that is not the Trainer.
Diagnostics mesh_notes(const JobSpec& job);

}  // namespace qlp

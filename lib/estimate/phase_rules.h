// What is not worked out of the phases after training, or what the libraries refuse there.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Refusals; empty if the plan can evaluate and save as the job asks.
Diagnostics check_phases(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

/// Whether save_model() has whole weights to write: under ZeRO-3 somebody must want them gathered.
bool gathers_model(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack);

/// Whether a checkpoint is a SHARDED_STATE_DICT.
bool checkpoints_shards(const JobSpec& job, const ShardingPlan& plan);

}  // namespace qlp

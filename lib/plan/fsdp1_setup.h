// What an FSDP1 plan makes of a job: which ranks share flat parameters, in which dtypes they compute.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/fsdp1.h"
#include "plan/job_spec.h"

namespace qlp {

struct Fsdp1Groups {
  std::int64_t ranks = 1;     ///< of the process group that gathers and reduces
  std::int64_t replicas = 1;  ///< such groups; their shards' gradients are summed
  bool shards = false;
};

/// Hybrid strategies shard over the GPUs of a node (_init_intra_and_inter_node_groups). A group of one rank does not
/// shard: FSDP switches to NO_SHARD (_init_core_state).
constexpr Fsdp1Groups fsdp1_groups(const Fsdp1& plan, const ClusterSpec& cluster) {
  Fsdp1Groups groups{.ranks = cluster.world_size};
  if (is_hybrid(plan.sharding_strategy)) {
    groups.ranks = std::min(cluster.gpus_per_node, cluster.world_size);
    groups.replicas = cluster.world_size / groups.ranks;
  }
  groups.shards = plan.sharding_strategy != ShardingStrategy::no_shard && groups.ranks > 1;
  return groups;
}

/// The policy that the plan gives, else by the Trainer's flag (accelerate dataclasses.py, set_mixed_precision). With
/// 4-bit weights the Trainer sets all to the dtype of their storage (transformers trainer.py,
/// _fsdp_qlora_plugin_updates).
inline MixedPrecision fsdp1_mixed_precision(const Fsdp1& plan, const JobSpec& job) {
  std::optional<DType> dtype;
  if (job.training.mixed_precision()) dtype = job.training.autocast_dtype();
  if (job.quantization)
    dtype = job.quantization->quant_storage;
  else if (plan.mixed_precision_policy != MixedPrecision{})
    return plan.mixed_precision_policy;
  return {.param_dtype = dtype, .reduce_dtype = dtype, .buffer_dtype = dtype};
}

}  // namespace qlp

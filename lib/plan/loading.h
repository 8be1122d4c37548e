// Where the weights of a job arrive under a plan.
#pragma once

#include "plan/job_spec.h"

namespace qlp {

/// The job's choice; where it leaves it open: rank 0 reads for all under FSDP (accelerate's RAM-efficient loading),
/// else every rank loads onto its GPU (device_map). Never Loading::automatic.
constexpr Loading loading_under(Loading chosen, const ShardingPlan& plan) {
  if (chosen != Loading::automatic) return chosen;
  return std::holds_alternative<Fsdp1>(plan) || std::holds_alternative<Fsdp2>(plan) ? Loading::rank0 : Loading::gpu;
}

}  // namespace qlp

// Where the weights of a job arrive under a plan.
#pragma once

#include "plan/job_spec.h"

namespace qlp {

/// What from_pretrained does with the weights.
enum class LoadPath : std::uint8_t {
  gpu,          ///< every rank loads onto its GPU (device_map)
  host,         ///< into host memory; the runtime moves them
  through_gpu,  ///< quantized on the GPU one by one, then to the host
};

/// FSDP with every parameter in its hands: those that it ignores it does not move.
constexpr bool loads_ram_efficiently(const ShardingPlan& plan) {
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  return std::holds_alternative<Fsdp1>(plan) || (fsdp2 && fsdp2->ignored_params == Fsdp2Ignored::none);
}

/// The job's choice; where it leaves it open: rank 0 reads for all under FSDP (accelerate's RAM-efficient loading),
/// else every rank loads onto its GPU. Never Loading::automatic.
constexpr Loading loading_under(Loading chosen, const ShardingPlan& plan) {
  if (chosen != Loading::automatic) return chosen;
  return loads_ram_efficiently(plan) ? Loading::rank0 : Loading::gpu;
}

/// RAM-efficient loading is FSDP's: without it every rank reads for itself. bitsandbytes quantizes on the GPU, and
/// leaves the weights there unless FSDP loads RAM-efficiently (transformers quantizer_bnb_4bit.py, update_device_map;
/// modeling_utils.py, _load_state_dict_into_meta_model).
inline LoadPath load_path(const JobSpec& job, const ShardingPlan& plan) {
  const Loading loading = loading_under(job.loading, plan);
  if (job.quantization)
    return loading == Loading::rank0 && loads_ram_efficiently(plan) ? LoadPath::through_gpu : LoadPath::gpu;
  return loading == Loading::gpu ? LoadPath::gpu : LoadPath::host;
}

}  // namespace qlp

// Where the weights of a job arrive under a plan.
#pragma once

#include "plan/job_spec.h"
#include "plan/load_behaviour.h"

namespace qlp {

/// What from_pretrained does with the weights.
enum class LoadPath : std::uint8_t {
  gpu,          ///< every rank loads onto its GPU (device_map)
  host,         ///< into host memory; the runtime moves them
  through_gpu,  ///< quantized on the GPU one by one, then to the host
  in_parts,     ///< each parameter is cut among the ranks as it is made (zero.Init)
  sharded,      ///< every rank reads its own part onto its GPU
};

/// FSDP with every parameter in its hands: those that it ignores it does not move.
constexpr bool loads_ram_efficiently(const ShardingPlan& plan) {
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  return std::holds_alternative<Fsdp1>(plan) || (fsdp2 && fsdp2->ignored_params == Fsdp2Ignored::none);
}

/// ZeRO-3 where transformers knows of it before it makes the model.
constexpr bool loads_in_parts(const ShardingPlan& plan) {
  const auto* zero = std::get_if<Zero>(&plan);
  return zero && zero->stage == 3;
}

/// transformers itself cuts the model while it loads, by fully_shard on a mesh that tensor or expert parallelism shares
/// (from_pretrained with a DistributedConfig of tp_size, ep_size and fsdp_size; distributed/mixin.py, 5.24).
inline bool shards_at_load(const JobSpec& job, const ShardingPlan& plan) {
  return std::holds_alternative<Fsdp2>(plan) && (job.cluster.mesh.tp > 1 || job.cluster.mesh.ep > 1);
}

/// The job's choice; where it leaves it open: rank 0 reads for all under FSDP (accelerate's RAM-efficient loading) and
/// ZeRO-3 (zero.Init), else every rank loads onto its GPU. Never Loading::automatic.
constexpr Loading loading_under(Loading chosen, const ShardingPlan& plan) {
  if (chosen != Loading::automatic) return chosen;
  return loads_ram_efficiently(plan) || loads_in_parts(plan) ? Loading::rank0 : Loading::gpu;
}

/// The same of a job, whose mesh may have transformers cut the model while it loads it.
inline Loading loading_under(const JobSpec& job, const ShardingPlan& plan) {
  if (job.loading == Loading::automatic && shards_at_load(job, plan)) return Loading::gpu;
  return loading_under(job.loading, plan);
}

/// RAM-efficient loading is FSDP's: without it every rank reads for itself. bitsandbytes quantizes on the GPU, and
/// leaves the weights there unless FSDP loads RAM-efficiently and the stack then moves them (transformers
/// quantizer_bnb_4bit.py, update_device_map; modeling_utils.py, _load_state_dict_into_meta_model).
inline LoadPath load_path(const JobSpec& job, const ShardingPlan& plan) {
  if (shards_at_load(job, plan)) return LoadPath::sharded;
  const Loading loading = loading_under(job, plan);
  if (job.quantization)
    return loading == Loading::rank0 && loads_ram_efficiently(plan) && load_behaviour(job.stack).takes_quantized_off_gpu
               ? LoadPath::through_gpu
               : LoadPath::gpu;
  if (loading == Loading::rank0 && loads_in_parts(plan)) return LoadPath::in_parts;
  return loading == Loading::gpu ? LoadPath::gpu : LoadPath::host;
}

}  // namespace qlp

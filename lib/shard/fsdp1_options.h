// How FullyShardedDataParallel is constructed (torch/distributed/fsdp/api.py), as far as memory depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "memory/block.h"
#include "nn/module.h"
#include "tensor/work.h"

namespace qlp {

/// torch.distributed.fsdp.MixedPrecision. A dtype that is not given is that of the parameters; gradients are then
/// reduced in the dtype of the computation.
struct MixedPrecision {
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;
  std::optional<DType> buffer_dtype;
  friend bool operator==(const MixedPrecision&, const MixedPrecision&) = default;
};

/// When the next unit of the backward pass is gathered: before the gradients of this one are computed, after, or when
/// its turn comes (torch.distributed.fsdp.BackwardPrefetch; accelerate's name for none).
enum class BackwardPrefetch : std::uint8_t { backward_pre, backward_post, no_prefetch };

/// Which modules are units of their own below the root (torch/distributed/fsdp/wrap.py; accelerate's names).
enum class WrapPolicy : std::uint8_t { transformer_based_wrap, size_based_wrap, no_wrap };

struct Fsdp1Options {
  bool shards = true;                  ///< all strategies but NO_SHARD
  bool reshards_after_forward = true;  ///< FULL_SHARD and HYBRID_SHARD
  bool hybrid = false;                 ///< the hybrid strategies: gradients are then summed over the replicas
  bool use_orig_params = false;
  bool offloads = false;  ///< CPUOffload(offload_params=True): shards and their gradients live on the host
  MixedPrecision mixed_precision;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::backward_pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  WrapPolicy wrap_policy = WrapPolicy::transformer_based_wrap;
  std::vector<ModuleKind> wrapped{ModuleKind::decoder_layer};  ///< by transformer_based_wrap
  std::int64_t min_num_params = 100'000'000;                   ///< elements that make a unit, by size
  std::int64_t world_size = 1;                                 ///< ranks that share a flat parameter
  std::int64_t rank = 0;                                       ///< among them
  std::int64_t replicas = 1;
  RankGroup group() const { return {shards ? MeshAxis::dp_shard : MeshAxis::dp_replicate, world_size}; }
  RankGroup replica_group() const { return {MeshAxis::dp_replicate, replicas, world_size}; }
  /// sync_module_states: each unit is sent by the first rank before it is flattened (RAM-efficient loading).
  bool syncs_module_states = false;
  /// accelerate turns flat parameters that are trained into float32 after wrapping (accelerator.py, prepare_model).
  bool upcasts_trained = false;
  /// accelerate converts what the model returns, within the root's wrapper (accelerator.py, prepare_model).
  bool outputs_to_fp32 = false;
  /// PEFT's fsdp_auto_wrap_policy: modules without children whose weight is trained are units of their own.
  bool wraps_trained_leaves = false;
  /// clip_grad_norm_ makes a zero once and keeps it (fully_sharded_data_parallel.py, _zero_scalar).
  bool keeps_zero_scalar = true;
  /// Chunks of a SHARDED_STATE_DICT stay on the GPU until it is written: where offload has accelerate make a process
  /// group for the CPU too, ShardedTensor.cpu() takes them to be there (torch/distributed/fsdp/_shard_utils.py,
  /// _create_chunk_sharded_tensor: _get_pg_default_device).
  bool chunks_stay = false;
  /// Collectives run on a stream of NCCL, on which their tensors are recorded (torch before 2.8).
  bool records_collectives = false;
};

/// The streams that FSDP1 makes beside the one of the computation (_runtime_utils.py, _init_streams), and NCCL's.
namespace fsdp1_stream {
inline constexpr StreamId kUnshard = 1, kPostBackward = 2, kPreUnshard = 3, kAllReduce = 4;
/// One for each communicator: of the ranks that share parameters, and of the replicas.
inline constexpr StreamId kCollectives = 5, kReplicaCollectives = 6;
}  // namespace fsdp1_stream

}  // namespace qlp

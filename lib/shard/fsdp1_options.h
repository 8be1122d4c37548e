// How FullyShardedDataParallel is constructed (torch/distributed/fsdp/api.py), as far as memory depends on it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "memory/block.h"
#include "tensor/work.h"

namespace qlp {

/// torch.distributed.fsdp.MixedPrecision; a dtype that is not given is that of the parameters.
struct MixedPrecision {
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;
  std::optional<DType> buffer_dtype;
};

struct Fsdp1Options {
  bool shards = true;  ///< FULL_SHARD, else NO_SHARD
  bool use_orig_params = false;
  MixedPrecision mixed_precision;
  bool backward_prefetch = true;  ///< BACKWARD_PRE, else none
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  RankGroup group() const { return {shards ? MeshAxis::dp_shard : MeshAxis::dp_replicate, world_size}; }
  /// accelerate turns flat parameters that are trained into float32 after wrapping (accelerator.py, prepare_model).
  bool upcasts_trained = false;
  /// accelerate converts what the model returns, within the root's wrapper (accelerator.py, prepare_model).
  bool outputs_to_fp32 = false;
  /// PEFT's fsdp_auto_wrap_policy: modules without children whose weight is trained are units of their own.
  bool wraps_trained_leaves = false;
  /// Collectives run on a stream of NCCL, on which their tensors are recorded (torch before 2.8).
  bool records_collectives = false;
};

/// The streams that FSDP1 makes beside the one of the computation (_runtime_utils.py, _init_streams), and NCCL's.
namespace fsdp1_stream {
inline constexpr StreamId kUnshard = 1, kPostBackward = 2, kPreUnshard = 3, kCollectives = 4;
}  // namespace fsdp1_stream

}  // namespace qlp

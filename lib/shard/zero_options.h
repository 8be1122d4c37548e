// How DeepSpeed's engine and its optimizer for stages 1 and 2 are set up (deepspeed/runtime/engine.py,
// _configure_zero_optimizer), as far as memory depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "memory/block.h"
#include "shard/zero_loss_scale.h"
#include "tensor/work.h"

namespace qlp {

struct ZeroOptions {
  bool partition_gradients = true;  ///< stage 2, else stage 1
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  RankGroup group() const { return {MeshAxis::dp_shard, world_size}; }
  /// The engine casts the module to it (bf16, fp16 enabled); none: parameters stay as they are.
  std::optional<DType> module_dtype;
  bool accumulates = false;      ///< over several micro steps
  double gradient_clipping = 0;  ///< the most that the norm may be; 0: any
  bool clips() const { return gradient_clipping > 0; }
  bool checks_overflow = false;  ///< always under fp16
  ZeroLossScale loss_scale;      ///< that the first step has
  bool norms_decay = false;      ///< which parameters the Trainer puts into the group with weight decay
  /// The optimizer is that of DeepSpeed's file, of all parameters in one group; whether it is FusedAdam or FusedLion,
  /// which have a flag of their kernel on the GPU (ops/adam/fused_adam.py, ops/lion/fused_lion.py); whether it is
  /// torch's Adagrad, which first has sums for these, and is then made again of flat parts.
  bool one_group = false, has_kernel_flag = false, makes_first_sums = false;

  /// Elements that the optimizer's state has a common scale for, between which it cannot be sliced; 0: it can.
  std::int64_t state_block = 0;

  std::int64_t reduce_bucket_size = 0;  ///< elements
  bool reduce_scatter = true;
  bool use_multi_rank_bucket_allreduce = true;
  bool contiguous_gradients = true;  ///< always with offload
  bool overlap_comm = false;
  bool round_robin_gradients = false;
  bool offload_optimizer = false;  ///< to the host
  bool pin_memory = false;         ///< what is offloaded
  /// Collectives run on a stream of NCCL, on which their tensors are recorded (torch before 2.8).
  bool records_collectives = false;

  /// In which gradients are reduced and in which they are added up, where it is not that of the module (engine.py,
  /// communication_data_type, get_data_types).
  std::optional<DType> communication_data_type, grad_accum_dtype;
  DType master_dtype = DType::float32;  ///< of what the optimizer updates
  DType reduced_dtype() const { return communication_data_type.value_or(module_dtype.value_or(DType::float32)); }
  DType gradient_dtype() const { return grad_accum_dtype.value_or(module_dtype.value_or(DType::float32)); }
};

/// Which of the groups that the Trainer makes of what is trained a parameter is in, with weight decay or without. An
/// optimizer of DeepSpeed's own has all in the first.
constexpr std::size_t zero_group(bool one_group, bool decays) { return one_group || decays ? 0 : 1; }

/// The streams beside that of the computation: DeepSpeed's for reductions that overlap, and NCCL's.
namespace zero_stream {
inline constexpr StreamId kReduction = 1, kCollectives = 2;
}  // namespace zero_stream

}  // namespace qlp

// What DeepSpeedZeroOptimizer_Stage3 is set up with (deepspeed/runtime/zero/stage3.py, config.py, 0.18.3). Sizes of
// buckets and thresholds are in elements.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/dtype.h"
#include "shard/zero_loss_scale.h"
#include "tensor/storage.h"
#include "tensor/work.h"

namespace qlp {

struct Zero3Options {
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  /// The engine casts the module to it (bf16 enabled); none: parameters stay as they are.
  std::optional<DType> module_dtype;
  /// In which gradients are reduced and in which they are added up, where it is not that of the module (engine.py,
  /// communication_data_type, get_data_types).
  std::optional<DType> communication_data_type, grad_accum_dtype;
  DType master_dtype = DType::float32;  ///< of what the optimizer updates
  DType reduced_dtype() const { return communication_data_type.value_or(module_dtype.value_or(DType::float32)); }
  DType gradient_dtype() const { return grad_accum_dtype.value_or(module_dtype.value_or(DType::float32)); }
  ZeroLossScale loss_scale;  ///< that the first step has
  bool checks_overflow() const { return module_dtype == DType::float16; }
  double gradient_clipping = 1;  ///< the most that the norm may be; 0: any
  bool clips() const { return gradient_clipping > 0; }
  bool norms_decay = false;  ///< which parameters the Trainer puts into the group with weight decay
  /// The optimizer is that of DeepSpeed's file, of all parameters in one group; whether it is FusedAdam or FusedLion,
  /// which have a flag of their kernel on the GPU (ops/adam/fused_adam.py, ops/lion/fused_lion.py); whether it is
  /// torch's Adagrad, which first has sums for these, and is then made again of flat parts.
  bool one_group = false, has_kernel_flag = false, makes_first_sums = false;
  int outer_modules = 1;  ///< that are called around the decoder
  /// The rotary module knows its frequencies by a second name, which a cast of the module leaves alone.
  bool keeps_first_frequencies = false;

  std::int64_t reduce_bucket_size = 500'000'000;
  /// Else the bucket is summed as a whole.
  bool reduce_scatter = true;
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  std::int64_t sub_group_size = 1'000'000'000;
  bool contiguous_gradients = true;
  /// Several parameters are fetched by a sum of what each rank has of them.
  bool fetches_by_all_reduce = false;
  bool memory_efficient_linear = true;  ///< with zero.Init
  /// Gathers and reductions have streams of their own.
  bool overlap_comm = true;
  bool offload_param = false;                     ///< parts of parameters live on the host
  bool offload_optimizer = false;                 ///< master weights, gradients and states live on the host
  bool pin_param = false, pin_gradients = false;  ///< pin_memory of either

  Place param_place() const { return !offload_param ? Place::device : pin_param ? Place::pinned : Place::host; }
  Place master_place() const { return offload_optimizer ? Place::host : Place::device; }
  Place gradient_place() const { return offload_optimizer && pin_gradients ? Place::pinned : master_place(); }

  /// zero_hpz_partition_size: ranks that share a second copy of every parameter, cut among them alone; 1: there is
  /// none.
  std::int64_t secondary_ranks = 1;

  RankGroup group() const { return {.size = world_size}; }
  RankGroup secondary_group() const { return {MeshAxis::dp_shard, secondary_ranks}; }
  StreamId gather_stream() const { return overlap_comm ? 1 : 0; }
  StreamId reduce_stream() const { return overlap_comm ? 2 : 0; }
};

}  // namespace qlp

// DeepSpeed ZeRO: the keys of its JSON file, those of zero_optimization and of the sections beside it that memory
// depends on (deepspeed/runtime/zero/config.py, offload_config.py, precision_config.py, 0.18.3).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "plan/fillable.h"

namespace qlp {

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };

struct ZeroOffloadOptimizer {
  OffloadDevice device = OffloadDevice::none;
  bool pin_memory = false;
  std::int64_t buffer_count = 4;
  double ratio = 1.0;  ///< of the optimizer's states; stage 3
  friend bool operator==(const ZeroOffloadOptimizer&, const ZeroOffloadOptimizer&) = default;
};

/// Stage 3.
struct ZeroOffloadParam {
  OffloadDevice device = OffloadDevice::none;
  bool pin_memory = false;
  std::int64_t buffer_count = 5;
  std::int64_t buffer_size = 100'000'000;
  std::int64_t max_in_cpu = 1'000'000'000;
  friend bool operator==(const ZeroOffloadParam&, const ZeroOffloadParam&) = default;
};

/// `enabled`: "auto" is by the Trainer's mixed precision, as where the file has no such section.
struct ZeroBf16 {
  Fillable<bool> enabled;
  bool check_grad_overflow = false;
  bool bf16_master_weights_and_grads = false;
  bool bf16_optimizer_states = false;
  friend bool operator==(const ZeroBf16&, const ZeroBf16&) = default;
};
struct ZeroFp16 {
  Fillable<bool> enabled;
  double loss_scale = 0;  ///< 0: one that follows overflows; it changes numbers, not memory, as do the following
  std::int64_t initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
  friend bool operator==(const ZeroFp16&, const ZeroFp16&) = default;
};

/// The optimizer of DeepSpeed's file, which then is the one that trains. Any but the first four is torch's of that
/// name.
enum class ZeroOptimizerType : std::uint8_t { none, adam, adamw, adagrad, lion, sgd, rmsprop };

struct ZeroOptimizerParams {
  bool torch_adam = false;  ///< torch's, in the place of DeepSpeed's FusedAdam or DeepSpeedCPUAdam
  bool adam_w_mode = true;  ///< of Adam: decay that is not in the gradients
  Fillable<double> weight_decay;
  double momentum = 0;  ///< of SGD
  friend bool operator==(const ZeroOptimizerParams&, const ZeroOptimizerParams&) = default;
};
struct ZeroOwnOptimizer {
  ZeroOptimizerType type = ZeroOptimizerType::none;
  ZeroOptimizerParams params;
  friend bool operator==(const ZeroOwnOptimizer&, const ZeroOwnOptimizer&) = default;
};

/// The words that DeepSpeed has for dtypes.
enum class ZeroDType : std::uint8_t { fp16, bf16, fp32 };

struct ZeroDataTypes {
  std::optional<ZeroDType> grad_accum_dtype;  ///< none: that of the model
  friend bool operator==(const ZeroDataTypes&, const ZeroDataTypes&) = default;
};

/// DeepSpeed's own autocast around the module.
struct ZeroTorchAutocast {
  bool enabled = false;
  std::optional<ZeroDType> dtype;  ///< none: torch's default
  friend bool operator==(const ZeroTorchAutocast&, const ZeroTorchAutocast&) = default;
};

/// Where a value may be absent, that is DeepSpeed's "auto" as transformers fills it in (integrations/deepspeed.py).
/// Sizes of buckets and thresholds are in elements.
struct Zero {
  int stage = 2;
  std::optional<std::int64_t> reduce_bucket_size = 500'000'000;  ///< auto: hidden_size^2
  bool reduce_scatter = true;
  bool contiguous_gradients = true;
  bool overlap_comm = false;  ///< DeepSpeed's default is true in stage 3
  // Stages 1 and 2.
  bool use_multi_rank_bucket_allreduce = true;
  bool round_robin_gradients = false;
  bool allgather_partitions = true;
  std::int64_t allgather_bucket_size = 500'000'000;
  // Stage 3.
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;
  std::optional<std::int64_t> stage3_prefetch_bucket_size = 50'000'000;      ///< auto: 0.9 hidden_size^2
  std::optional<std::int64_t> stage3_param_persistence_threshold = 100'000;  ///< auto: 10 hidden_size
  std::int64_t stage3_model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  std::int64_t stage3_module_granularity_threshold = 0;
  bool stage3_gather_16bit_weights_on_model_save = false;
  bool stage3_use_all_reduce_for_fetch_params = false;
  bool memory_efficient_linear = true;  ///< with zero.Init
  std::int64_t zero_hpz_partition_size = 1;
  bool zero_quantized_weights = false;
  bool zero_quantized_nontrainable_weights = false;
  bool zero_quantized_gradients = false;
  ZeroOffloadParam offload_param;

  ZeroOffloadOptimizer offload_optimizer;
  // Beside zero_optimization.
  ZeroOwnOptimizer optimizer;
  bool zero_allow_untested_optimizer = true;  ///< the Trainer sets it, unless the optimizer is the file's
  bool zero_force_ds_cpu_optimizer = true;
  Fillable<double> gradient_clipping;                ///< auto: training.max_grad_norm; left out: nothing is clipped
  std::optional<ZeroDType> communication_data_type;  ///< none: that of the model
  ZeroDataTypes data_types;
  ZeroTorchAutocast torch_autocast;
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
  ZeroBf16 bf16;
  ZeroFp16 fp16;
  friend bool operator==(const Zero&, const Zero&) = default;
};

}  // namespace qlp

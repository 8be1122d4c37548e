// DeepSpeed ZeRO: the keys of its JSON file, those of zero_optimization and of the sections beside it that memory
// depends on (deepspeed/runtime/zero/config.py, offload_config.py, precision_config.py, 0.18.3).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "plan/options.h"

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

/// `enabled`: none is "auto", by the Trainer's mixed precision.
struct ZeroBf16 {
  std::optional<bool> enabled;
  bool check_grad_overflow = false;
  bool bf16_master_weights_and_grads = false;
  bool bf16_optimizer_states = false;
  friend bool operator==(const ZeroBf16&, const ZeroBf16&) = default;
};
struct ZeroFp16 {
  std::optional<bool> enabled;
  double loss_scale = 0;  ///< 0: one that follows overflows; it changes numbers, not memory, as do the following
  std::int64_t initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
  friend bool operator==(const ZeroFp16&, const ZeroFp16&) = default;
};

/// The words that DeepSpeed has for dtypes.
enum class ZeroDType : std::uint8_t { fp16, bf16, fp32 };

struct ZeroDataTypes {
  std::optional<ZeroDType> grad_accum_dtype;  ///< none: that of the model
  friend bool operator==(const ZeroDataTypes&, const ZeroDataTypes&) = default;
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
  bool zero_force_ds_cpu_optimizer = true;
  std::optional<double> gradient_clipping;           ///< auto: training.max_grad_norm
  std::optional<ZeroDType> communication_data_type;  ///< none: that of the model
  ZeroDataTypes data_types;
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
  ZeroBf16 bf16;
  ZeroFp16 fp16;
  friend bool operator==(const Zero&, const Zero&) = default;
};

/// Whether DeepSpeed's file has this option at its root; all others of Zero are in zero_optimization.
constexpr bool is_at_root(std::string_view option) {
  return option == "zero_force_ds_cpu_optimizer" || option == "gradient_clipping" || option == "bf16" ||
         option == "fp16" || option == "communication_data_type" || option == "data_types" ||
         option == "prescale_gradients" || option == "gradient_predivide_factor";
}

/// Whether transformers fills this option in where it is "auto", which DeepSpeed itself does not know: there the option
/// is left out.
constexpr bool is_filled_in(std::string_view option) {
  return option != "communication_data_type" && option != "grad_accum_dtype";
}

inline constexpr std::int64_t kZeroMost = std::numeric_limits<std::int64_t>::max();

template <OptionsOf<ZeroOffloadOptimizer> P, class Visitor>
void visit_options(P& offload, Visitor&& visit) {
  visit.option("device", offload.device);
  visit.option("pin_memory", offload.pin_memory);
  visit.option("buffer_count", offload.buffer_count, 0, kZeroMost);
  visit.option("ratio", offload.ratio, 0.0, 1.0);
}

template <OptionsOf<ZeroOffloadParam> P, class Visitor>
void visit_options(P& offload, Visitor&& visit) {
  visit.option("device", offload.device);
  visit.option("pin_memory", offload.pin_memory);
  visit.option("buffer_count", offload.buffer_count, 0, kZeroMost);
  visit.option("buffer_size", offload.buffer_size, 0, kZeroMost);
  visit.option("max_in_cpu", offload.max_in_cpu, 0, kZeroMost);
}

template <OptionsOf<ZeroDataTypes> P, class Visitor>
void visit_options(P& types, Visitor&& visit) {
  visit.automatic("grad_accum_dtype", types.grad_accum_dtype);
}

template <OptionsOf<ZeroBf16> P, class Visitor>
void visit_options(P& bf16, Visitor&& visit) {
  visit.automatic("enabled", bf16.enabled);
  visit.option("check_grad_overflow", bf16.check_grad_overflow);
  visit.option("bf16_master_weights_and_grads", bf16.bf16_master_weights_and_grads);
  visit.option("bf16_optimizer_states", bf16.bf16_optimizer_states);
}

template <OptionsOf<ZeroFp16> P, class Visitor>
void visit_options(P& fp16, Visitor&& visit) {
  visit.automatic("enabled", fp16.enabled);
  visit.option("loss_scale", fp16.loss_scale, 0.0, 1e30);
  visit.option("initial_scale_power", fp16.initial_scale_power, 0, 100);
  visit.option("loss_scale_window", fp16.loss_scale_window, 1, kZeroMost);
  visit.option("hysteresis", fp16.hysteresis, 1, kZeroMost);
  visit.option("consecutive_hysteresis", fp16.consecutive_hysteresis);
  visit.option("min_loss_scale", fp16.min_loss_scale, 0.0, 1e30);
}

template <OptionsOf<Zero> P, class Visitor>
void visit_stage3_options(P& plan, Visitor&& visit) {
  visit.option("sub_group_size", plan.sub_group_size, 0, kZeroMost);
  visit.option("stage3_max_live_parameters", plan.stage3_max_live_parameters, 0, kZeroMost);
  visit.option("stage3_max_reuse_distance", plan.stage3_max_reuse_distance, 0, kZeroMost);
  visit.automatic("stage3_prefetch_bucket_size", plan.stage3_prefetch_bucket_size, 0, kZeroMost);
  visit.automatic("stage3_param_persistence_threshold", plan.stage3_param_persistence_threshold, 0, kZeroMost);
  visit.option("stage3_model_persistence_threshold", plan.stage3_model_persistence_threshold, 0, kZeroMost);
  visit.option("stage3_module_granularity_threshold", plan.stage3_module_granularity_threshold, 0, kZeroMost);
  visit.option("stage3_gather_16bit_weights_on_model_save", plan.stage3_gather_16bit_weights_on_model_save);
  visit.option("stage3_use_all_reduce_for_fetch_params", plan.stage3_use_all_reduce_for_fetch_params);
  visit.option("memory_efficient_linear", plan.memory_efficient_linear);
  visit.option("zero_hpz_partition_size", plan.zero_hpz_partition_size, 0, kZeroMost);
  visit.option("zero_quantized_weights", plan.zero_quantized_weights);
  visit.option("zero_quantized_nontrainable_weights", plan.zero_quantized_nontrainable_weights);
  visit.option("zero_quantized_gradients", plan.zero_quantized_gradients);
  visit.section("offload_param", plan.offload_param);
}

template <OptionsOf<Zero> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  visit.named("stage", plan.stage);
  visit.automatic("reduce_bucket_size", plan.reduce_bucket_size, 0, kZeroMost);
  visit.option("reduce_scatter", plan.reduce_scatter);
  visit.option("contiguous_gradients", plan.contiguous_gradients);
  visit.option("overlap_comm", plan.overlap_comm);
  if (plan.stage == 3) {
    visit_stage3_options(plan, visit);
  } else {
    visit.option("use_multi_rank_bucket_allreduce", plan.use_multi_rank_bucket_allreduce);
    visit.option("round_robin_gradients", plan.round_robin_gradients);
    visit.option("allgather_partitions", plan.allgather_partitions);
    visit.option("allgather_bucket_size", plan.allgather_bucket_size, 0, kZeroMost);
  }
  visit.section("offload_optimizer", plan.offload_optimizer);
  visit.option("zero_force_ds_cpu_optimizer", plan.zero_force_ds_cpu_optimizer);
  visit.automatic("gradient_clipping", plan.gradient_clipping, 0.0, 1e9);
  visit.automatic("communication_data_type", plan.communication_data_type);
  visit.section("data_types", plan.data_types);
  visit.option("prescale_gradients", plan.prescale_gradients);
  visit.option("gradient_predivide_factor", plan.gradient_predivide_factor, 0.0, 1e9);
  visit.section("bf16", plan.bf16);
  visit.section("fp16", plan.fp16);
}

}  // namespace qlp

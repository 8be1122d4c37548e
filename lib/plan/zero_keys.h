// The options of ZeRO plans as keys of a job file and of DeepSpeed's, for whoever reads or writes them
// (plan/options.h).
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "plan/options.h"
#include "plan/zero.h"

namespace qlp {

/// Whether DeepSpeed's file has this option at its root; all others of Zero are in zero_optimization.
constexpr bool is_at_root(std::string_view option) {
  return option == "optimizer" || option == "zero_allow_untested_optimizer" ||
         option == "zero_force_ds_cpu_optimizer" || option == "gradient_clipping" || option == "bf16" ||
         option == "fp16" || option == "communication_data_type" || option == "data_types" ||
         option == "torch_autocast" || option == "prescale_gradients" || option == "gradient_predivide_factor";
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

template <OptionsOf<ZeroOptimizerParams> P, class Visitor>
void visit_options(P& params, Visitor&& visit) {
  visit.option("torch_adam", params.torch_adam);
  visit.option("adam_w_mode", params.adam_w_mode);
  visit.fillable("weight_decay", params.weight_decay, 0.0, 1e9);
  visit.option("momentum", params.momentum, 0.0, 1e9);
}

/// Whether an optimizer of DeepSpeed's file takes this key of its params; of those that no one takes it says nothing.
constexpr bool takes_param(ZeroOptimizerType type, std::string_view key) {
  using Type = ZeroOptimizerType;
  const bool adam = type == Type::adam || type == Type::adamw;
  if (key == "torch_adam" || key == "adam_w_mode" || key == "bias_correction") return adam;
  if (key == "betas") return adam || type == Type::lion;
  if (key == "eps") return adam || type == Type::adagrad || type == Type::rmsprop;
  if (key == "momentum" || key == "nesterov" || key == "dampening") return type == Type::sgd;
  if (key == "alpha") return type == Type::rmsprop;
  if (key == "lr_decay" || key == "initial_accumulator_value") return type == Type::adagrad;
  return true;
}

template <OptionsOf<ZeroOwnOptimizer> P, class Visitor>
void visit_options(P& optimizer, Visitor&& visit) {
  visit.option("type", optimizer.type);
  visit.section("params", optimizer.params);
}

template <OptionsOf<ZeroDataTypes> P, class Visitor>
void visit_options(P& types, Visitor&& visit) {
  visit.automatic("grad_accum_dtype", types.grad_accum_dtype);
}

template <OptionsOf<ZeroTorchAutocast> P, class Visitor>
void visit_options(P& autocast, Visitor&& visit) {
  visit.option("enabled", autocast.enabled);
  visit.automatic("dtype", autocast.dtype);
}

template <OptionsOf<ZeroBf16> P, class Visitor>
void visit_options(P& bf16, Visitor&& visit) {
  visit.fillable("enabled", bf16.enabled);
  visit.option("check_grad_overflow", bf16.check_grad_overflow);
  visit.option("bf16_master_weights_and_grads", bf16.bf16_master_weights_and_grads);
  visit.option("bf16_optimizer_states", bf16.bf16_optimizer_states);
}

template <OptionsOf<ZeroFp16> P, class Visitor>
void visit_options(P& fp16, Visitor&& visit) {
  visit.fillable("enabled", fp16.enabled);
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
  visit.section("optimizer", plan.optimizer);
  visit.option("zero_allow_untested_optimizer", plan.zero_allow_untested_optimizer);
  visit.option("zero_force_ds_cpu_optimizer", plan.zero_force_ds_cpu_optimizer);
  visit.fillable("gradient_clipping", plan.gradient_clipping, 0.0, 1e9);
  visit.automatic("communication_data_type", plan.communication_data_type);
  visit.section("data_types", plan.data_types);
  visit.section("torch_autocast", plan.torch_autocast);
  visit.option("prescale_gradients", plan.prescale_gradients);
  visit.option("gradient_predivide_factor", plan.gradient_predivide_factor, 0.0, 1e9);
  visit.section("bf16", plan.bf16);
  visit.section("fp16", plan.fp16);
}

}  // namespace qlp

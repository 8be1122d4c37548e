#include "estimate/zero_plan.h"

#include <string>
#include <utility>
#include <variant>

#include "estimate/model_options.h"
#include "estimate/zero_rules.h"
#include "plan/loading.h"
#include "plan/plan_names.h"
#include "plan/stack_profile.h"

namespace qlp {

std::optional<DType> zero_module_dtype(const TrainingSpec& training, const Zero& plan) {
  if (filled_in(plan.fp16.enabled, training.fp16, false)) return DType::float16;
  if (filled_in(plan.bf16.enabled, training.bf16, false)) return DType::bfloat16;
  return std::nullopt;
}

DType zero_cast(DType own, std::optional<DType> module_dtype) {
  return module_dtype && is_floating(own) ? *module_dtype : own;
}

std::optional<DType> zero_dtype(std::optional<ZeroDType> word) {
  if (!word) return std::nullopt;
  return *word == ZeroDType::fp16 ? DType::float16 : *word == ZeroDType::bf16 ? DType::bfloat16 : DType::float32;
}

DType zero_master_dtype(const Zero& plan) {
  return plan.bf16.bf16_master_weights_and_grads ? DType::bfloat16 : DType::float32;
}

ZeroLossScale zero_loss_scale(const TrainingSpec& training, const Zero& plan) {
  if (zero_module_dtype(training, plan) != DType::float16) return {};
  const ZeroFp16& fp16 = plan.fp16;
  return ZeroLossScale(LossScaleOptions{.loss_scale = fp16.loss_scale,
                                        .initial_scale_power = fp16.initial_scale_power,
                                        .loss_scale_window = fp16.loss_scale_window,
                                        .hysteresis = fp16.hysteresis,
                                        .consecutive_hysteresis = fp16.consecutive_hysteresis,
                                        .min_loss_scale = fp16.min_loss_scale});
}

double zero_gradient_clipping(const TrainingSpec& training, const Zero& plan) {
  return filled_in(plan.gradient_clipping, training.max_grad_norm, 0.0);
}

std::int64_t zero_reduce_bucket_size(const ModelSpec& model, const Zero& plan) {
  return plan.reduce_bucket_size.value_or(model.hidden_size * model.hidden_size);
}

bool zero_takes_unfused_optimizer(const TrainingSpec& training, const Zero& plan) {
  return plan.stage == 1 && plan.data_types.grad_accum_dtype == ZeroDType::fp32 &&
         zero_module_dtype(training, plan) == DType::bfloat16 && plan.offload_optimizer.device == OffloadDevice::none;
}

bool zero_has_own_optimizer(const Zero& plan) { return plan.optimizer.type != ZeroOptimizerType::none; }

double zero_weight_decay(const TrainingSpec& training, const Zero& plan) {
  if (!zero_has_own_optimizer(plan)) return training.weight_decay;
  const auto& [type, params] = plan.optimizer;
  constexpr double kOfTorchsAdamW = 0.01;
  const bool torchs_adamw = params.torch_adam && (type == ZeroOptimizerType::adamw || params.adam_w_mode);
  return filled_in(params.weight_decay, training.weight_decay, torchs_adamw ? kOfTorchsAdamW : 0.0);
}

JobSpec zero_job(JobSpec job, const Zero& plan) {
  if (!zero_has_own_optimizer(plan)) return job;
  job.training.optimizer = {std::string(name_of(plan.optimizer.type)),
                            zero_optimizer_kind(job.training.optimizer.kind, plan)};
  job.training.optim_targets.reset();
  return job;
}

bool zero_has_kernel_flag(const Zero& plan) {
  const auto& [type, params] = plan.optimizer;
  const bool adam = type == ZeroOptimizerType::adam || type == ZeroOptimizerType::adamw;
  return ((adam && !params.torch_adam) || type == ZeroOptimizerType::lion) &&
         plan.offload_optimizer.device == OffloadDevice::none;
}

bool zero_makes_first_sums(const Zero& plan) {
  return plan.optimizer.type == ZeroOptimizerType::adagrad && plan.offload_optimizer.device == OffloadDevice::none;
}

OptimizerKind zero_optimizer_kind(const OptimizerKind& chosen, const Zero& plan) {
  const bool offloads = plan.offload_optimizer.device != OffloadDevice::none;
  const auto& [type, params] = plan.optimizer;
  if (type == ZeroOptimizerType::adagrad) return Adagrad{};
  if (type == ZeroOptimizerType::lion) return Lion{};
  if (type == ZeroOptimizerType::sgd) return Sgd{params.momentum};
  if (type == ZeroOptimizerType::rmsprop) return RmsProp{};
  if (zero_has_own_optimizer(plan)) {
    if (params.torch_adam) return AdamW{offloads ? AdamW::Loop::forloop : AdamW::Loop::foreach};
    return AdamW{offloads ? AdamW::Loop::fused : AdamW::Loop::deepspeed};
  }
  if (!offloads) return chosen;
  const auto* adamw = std::get_if<AdamW>(&chosen);
  if (!plan.zero_force_ds_cpu_optimizer)
    return adamw && adamw->loop == AdamW::Loop::foreach ? AdamW{AdamW::Loop::forloop} : chosen;
  if (std::holds_alternative<Adagrad>(chosen)) return chosen;
  return AdamW{AdamW::Loop::fused};
}

AdagradStart zero_adagrad_start(const Zero& plan) {
  const bool by_deepspeed = plan.offload_optimizer.device != OffloadDevice::none &&
                            (plan.zero_force_ds_cpu_optimizer || zero_has_own_optimizer(plan));
  return by_deepspeed ? AdagradStart::in_step : AdagradStart::unmoved;
}

Result<ZeroOptions> zero_options(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack) {
  if (auto refusals = check_zero(job, plan); !refusals.empty()) return Unexpected{std::move(refusals)};
  ZeroOptions options;
  options.partition_gradients = plan.stage == 2;
  options.world_size = job.cluster.world_size;
  options.rank = rank;
  options.module_dtype = zero_module_dtype(job.training, plan);
  options.communication_data_type = zero_dtype(plan.communication_data_type);
  options.grad_accum_dtype = zero_dtype(plan.data_types.grad_accum_dtype);
  options.master_dtype = zero_master_dtype(plan);
  options.accumulates = job.training.gradient_accumulation_steps > 1;
  options.gradient_clipping = zero_gradient_clipping(job.training, plan);
  options.checks_overflow = options.module_dtype == DType::float16 ||
                            (options.module_dtype == DType::bfloat16 && plan.bf16.check_grad_overflow);
  options.loss_scale = zero_loss_scale(job.training, plan);
  options.norms_decay = stack.trainer.norms_decay(job.model.family);
  options.one_group = zero_has_own_optimizer(plan);
  options.has_kernel_flag = zero_has_kernel_flag(plan);
  options.makes_first_sums = zero_makes_first_sums(plan);
  const OptimizerKind kind = zero_optimizer_kind(job.training.optimizer.kind, plan);
  if (const auto* torchao = std::get_if<Torchao>(&kind))
    options.state_block = torchao_block(*torchao, stack.optimizers.behaviour());
  options.reduce_bucket_size = zero_reduce_bucket_size(job.model, plan);
  options.reduce_scatter = plan.reduce_scatter;
  options.use_multi_rank_bucket_allreduce = plan.use_multi_rank_bucket_allreduce;
  options.offload_optimizer = plan.offload_optimizer.device != OffloadDevice::none;
  options.pin_memory = plan.offload_optimizer.pin_memory;
  options.contiguous_gradients = plan.contiguous_gradients || options.offload_optimizer;
  options.overlap_comm = plan.overlap_comm;
  options.round_robin_gradients = plan.round_robin_gradients;
  options.records_collectives = stack.torch.collectives_have_own_stream();
  return options;
}

}  // namespace qlp

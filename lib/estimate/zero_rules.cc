#include "estimate/zero_rules.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "base/text.h"
#include "estimate/model_options.h"
#include "estimate/weight_list.h"
#include "estimate/zero_plan.h"
#include "plan/loading.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

std::string python(bool value) { return value ? "True" : "False"; }

/// Where a job file has this option.
std::string path_of(const Zero& plan, const char* key) { return "plans.zero" + std::to_string(plan.stage) + "." + key; }

/// HfTrainerDeepSpeedConfig.fill_match: a value that is not "auto" must be the Trainer's.
Diagnostic mismatch(const std::string& key, const std::string& given, const std::string& trainers_key,
                    const std::string& trainers) {
  return refusal("deepspeed-mismatch",
                 "Please correct the following DeepSpeed config values that mismatch TrainingArguments values: - ds " +
                     key + "=" + given + " vs hf " + trainers_key + "=" + trainers,
                 "plans", "set " + key + " to auto, or leave it out");
}

void check_precision_sections(const TrainingSpec& training, const Zero& plan, Diagnostics& refusals) {
  if (const bool* bf16 = std::get_if<bool>(&plan.bf16.enabled); bf16 && *bf16 != training.bf16)
    refusals.push_back(mismatch("bf16.enabled", python(*bf16), "bf16|bf16_full_eval", python(training.bf16)));
  if (const bool* fp16 = std::get_if<bool>(&plan.fp16.enabled); fp16 && *fp16 != training.fp16)
    refusals.push_back(
        mismatch("fp16.enabled", python(*fp16), "fp16|fp16_full_eval+fp16_backend(amp)", python(training.fp16)));
}

/// report_ipg_memory_usage divides by it (base_optimizer.py).
void check_bucket(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  if (zero_reduce_bucket_size(job.model, plan) > 0) return;
  refusals.push_back(refusal("zero-empty-bucket", "ZeroDivisionError: float floor division by zero",
                             path_of(plan, "reduce_bucket_size"), "leave reduce_bucket_size out, or set it to auto"));
}

/// Of FP16_UnfusedOptimizer what is worked out.
void check_accumulation(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  if (!zero_takes_unfused_optimizer(job.training, plan)) return;
  const OptimizerKind kind = zero_optimizer_kind(job.training.optimizer.kind, plan);
  const auto* adamw = std::get_if<AdamW>(&kind);
  if (std::holds_alternative<Sgd>(kind) || std::holds_alternative<RmsProp>(kind) ||
      (adamw && adamw->loop != AdamW::Loop::deepspeed))
    return;
  refusals.push_back(refusal(
      "zero1-unfused-optimizer",
      "to add gradients of bfloat16 up in float32, DeepSpeed 0.18 takes an optimizer in the place of ZeRO-1's that "
      "shards nothing: what this optimizer makes there is not worked out yet",
      path_of(plan, "data_types.grad_accum_dtype"), "leave it out, or plan zero2"));
}

/// _configure_master_weights (base_optimizer.py)
void check_masters(const Zero& plan, Diagnostics& refusals) {
  const ZeroBf16& bf16 = plan.bf16;
  const auto refuse = [&](std::string message, std::string hint) {
    const char* key =
        bf16.bf16_master_weights_and_grads ? "bf16.bf16_master_weights_and_grads" : "bf16.bf16_optimizer_states";
    refusals.push_back(refusal("zero-bf16-masters", std::move(message), path_of(plan, key), std::move(hint)));
  };
  if (bf16.bf16_optimizer_states && !bf16.bf16_master_weights_and_grads)
    refuse("bf16_optimizer_states requires bf16_master_weights_and_gradients.", "set that too, or leave both out");
  if (!bf16.bf16_master_weights_and_grads) return;
  if (plan.offload_optimizer.device != OffloadDevice::none)
    refuse("what master weights in bfloat16 take on the host is not worked out yet", "leave offload_optimizer out");
  else if (!bf16.bf16_optimizer_states)
    refuse("Master weights feature requires ZeRO-" + std::to_string(plan.stage) + " Offload with DeepSpeedCPUAdam.",
           "set bf16_optimizer_states too, or leave bf16_master_weights_and_grads out");
}

/// Around a module that the engine has cast to the same dtype it casts nothing (DeepSpeed 0.18.3 on torch 2.8).
void check_autocast(const TrainingSpec& training, const Zero& plan, Diagnostics& refusals) {
  if (!plan.torch_autocast.enabled) return;
  const auto module = zero_module_dtype(training, plan);
  if (module == DType::bfloat16 && zero_dtype(plan.torch_autocast.dtype) == module) return;
  refusals.push_back(
      refusal("zero-torch-autocast",
              "what DeepSpeed's own autocast casts, and gradients that it reduces by dtypes, is not worked "
              "out but where bf16 is enabled and its dtype is bfloat16",
              path_of(plan, "torch_autocast"), "leave it out"));
}

/// What reduce-scatter takes (stage_1_and_2.py and stage3.py, where the optimizer is made). Stage 1 sums whole buckets.
void check_scaling(const Zero& plan, Diagnostics& refusals) {
  if (plan.stage == 1 || !plan.reduce_scatter) {
    if (plan.gradient_predivide_factor == 0 && !plan.prescale_gradients)
      refusals.push_back(refusal("zero-predivide",
                                 plan.stage == 3 ? "every gradient is divided by 0, and is no number afterwards"
                                                 : "ZeroDivisionError: float division by zero",
                                 path_of(plan, "gradient_predivide_factor"), "leave it out"));
    return;
  }
  const bool predivides = plan.gradient_predivide_factor != 1;
  if (!predivides && !plan.prescale_gradients) return;
  refusals.push_back(
      refusal("zero-scaled-gradients",
              std::string(predivides ? "gradient_predivide_factor != 1.0 is" : "pre-scale gradients is") +
                  " not yet supported with ZeRO-" + std::to_string(plan.stage) + " with reduce scatter enabled",
              path_of(plan, predivides ? "gradient_predivide_factor" : "prescale_gradients"),
              "leave prescale_gradients and gradient_predivide_factor out, or set reduce_scatter to false"));
}

/// initialize_optimizer_states (deepspeed/runtime/zero/stage_1_and_2.py, 0.18.3); DeepSpeedCPUAdagrad is none.
void check_adagrad(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  if (zero_has_own_optimizer(plan)) return;  // of one group
  const bool made_again = zero_adagrad_start(plan) == AdagradStart::unmoved;
  if (!std::holds_alternative<Adagrad>(job.training.optimizer.kind) || !made_again) return;
  const StackProfile stack(job.stack);
  std::set<bool> groups;
  for (const ListedWeight& weight : list_weights(job, stack.load))
    if (weight.trained) groups.insert(weight.has_weight_decay(stack.trainer.norms_decay(job.model.family)));
  if (groups.size() < 2) return;
  refusals.push_back(refusal("zero-adagrad",
                             "DeepSpeed makes torch's Adagrad again, of all flat parts in one group, where the Trainer "
                             "has two: 'IndexError: list index out of range'",
                             "training.optimizer", "take adamw_torch"));
}

/// What of its params depends on the job.
void check_own_params(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  const auto& [type, params] = plan.optimizer;
  if (const double* given = std::get_if<double>(&params.weight_decay); given && *given != job.training.weight_decay)
    refusals.push_back(mismatch("optimizer.params.weight_decay", exact_number(*given), "weight_decay",
                                exact_number(job.training.weight_decay)));
  if (params.momentum != 0 && type != ZeroOptimizerType::sgd)
    refusals.push_back(refusal("zero-momentum", std::string(name_of(type)) + " takes no momentum",
                               path_of(plan, "optimizer.params.momentum"), "leave it out"));
  const bool decays_gradients = type == ZeroOptimizerType::adam && !params.adam_w_mode;
  if (decays_gradients && params.torch_adam && zero_weight_decay(job.training, plan) != 0)
    refusals.push_back(refusal("zero-torch-adam-decay",
                               "without adam_w_mode this is torch's Adam, which adds weight decay to copies of the "
                               "gradients: what they take is not worked out",
                               path_of(plan, "optimizer.params.adam_w_mode"),
                               "leave adam_w_mode out, or set training.weight_decay to 0"));
}

/// deepspeed_optim_sched (transformers integrations/deepspeed.py); _configure_basic_optimizer,
/// _do_optimizer_sanity_check (engine.py); ZERO_SUPPORTED_OPTIMIZERS (zero/utils.py).
void check_own_optimizer(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  if (!zero_has_own_optimizer(plan)) return;
  if (std::holds_alternative<Adafactor>(job.training.optimizer.kind))
    refusals.push_back(refusal("zero-two-optimizers",
                               "--adafactor was passed, but also found `optimizer` configured in the DeepSpeed config. "
                               "Only one optimizer can be configured.",
                               path_of(plan, "optimizer"), "leave it out, or take adamw_torch"));
  const ZeroOptimizerType type = plan.optimizer.type;
  const bool untested = type == ZeroOptimizerType::sgd || type == ZeroOptimizerType::rmsprop;
  if (untested && !plan.zero_allow_untested_optimizer)
    refusals.push_back(
        refusal("zero-untested-optimizer",
                "You are using an untested ZeRO Optimizer. Please add <\"zero_allow_untested_optimizer\": "
                "true> in the configuration file to use it.",
                path_of(plan, "zero_allow_untested_optimizer"), "set it to true"));
  check_own_params(job, plan, refusals);
}

void check_offload(const JobSpec& job, const Zero& plan, Diagnostics& refusals) {
  const OptimizerKind& kind = job.training.optimizer.kind;
  const auto* bnb = std::get_if<Bitsandbytes>(&kind);
  const bool lion = bnb && bnb->algorithm == Bitsandbytes::Algorithm::lion && bnb->optim_bits == 32;
  const bool replaced = plan.offload_optimizer.device != OffloadDevice::none && plan.zero_force_ds_cpu_optimizer &&
                        !zero_has_own_optimizer(plan);
  if (replaced && (lion || std::holds_alternative<Adagrad>(kind))) {
    const std::string name = lion ? "DeepSpeedCPULion" : "DeepSpeedCPUAdagrad";
    // map_pytorch_optim_to_deepspeed (accelerate utils/deepspeed.py; huggingface/accelerate 3255)
    if (job.stack.accelerate >= Version{1, 2, 0})
      refusals.push_back(refusal("zero-offloaded-by-name",
                                 "accelerate makes a " + name +
                                     " with an argument of DeepSpeedCPUAdam: '__init__() got an unexpected keyword "
                                     "argument 'adamw_mode''",
                                 "training.optimizer",
                                 "take adamw_torch, set zero_force_ds_cpu_optimizer to false, or leave "
                                 "offload_optimizer out"));
    else if (lion)
      refusals.push_back(refusal("zero-offloaded-lion", name + ", which takes Lion's place, is not worked out",
                                 "training.optimizer", "take adamw_torch, or leave offload_optimizer out"));
  }
  const bool sums = std::holds_alternative<Adagrad>(kind) && plan.offload_optimizer.device == OffloadDevice::none &&
                    load_path(job, plan) != LoadPath::in_parts;
  const bool looked_at = sums || std::holds_alternative<AdamW>(kind) || std::holds_alternative<Sgd>(kind) ||
                         bnb != nullptr || std::holds_alternative<Adafactor>(kind) ||
                         std::holds_alternative<RmsProp>(kind) || std::holds_alternative<Lion>(kind) ||
                         std::holds_alternative<ScheduleFree>(kind) || std::holds_alternative<GrokAdamW>(kind) ||
                         std::holds_alternative<StableAdamW>(kind) || std::holds_alternative<Torchao>(kind);
  if (plan.stage == 3 && !looked_at)
    refusals.push_back(refusal("zero3-optimizer",
                               "what this optimizer keeps of the flat parts of ZeRO-3 is not worked out yet",
                               "training.optimizer", "take adamw_torch, or a plan of stage 2"));
  if (plan.offload_optimizer.device == OffloadDevice::nvme || plan.offload_param.device == OffloadDevice::nvme)
    refusals.push_back(refusal("zero-nvme", "offload to NVMe is not worked out", "plans", "set device to cpu"));
  if (plan.stage < 3 && plan.offload_optimizer.device != OffloadDevice::none && plan.offload_optimizer.ratio < 1.0)
    refusals.push_back(refusal("zero-partial-offload", "Partial offloading only supported for ZeRO Stage 3.", "plans",
                               "leave offload_optimizer.ratio out"));
}

}  // namespace

Diagnostics check_zero(const JobSpec& job, const Zero& plan) {
  Diagnostics refusals;
  const double* clipping = std::get_if<double>(&plan.gradient_clipping);
  if (clipping && *clipping != job.training.max_grad_norm)
    refusals.push_back(mismatch("gradient_clipping", exact_number(*clipping), "max_grad_norm",
                                exact_number(job.training.max_grad_norm)));
  check_precision_sections(job.training, plan, refusals);
  check_bucket(job, plan, refusals);
  check_accumulation(job, plan, refusals);
  check_masters(plan, refusals);
  check_autocast(job.training, plan, refusals);
  check_scaling(plan, refusals);
  check_own_optimizer(job, plan, refusals);
  const JobSpec trained = zero_job(job, plan);
  check_adagrad(trained, plan, refusals);
  check_offload(trained, plan, refusals);
  if (plan.stage < 3 && plan.allgather_bucket_size % 2 != 0)
    refusals.push_back(refusal("zero-allgather-bucket",
                               "allgather_bucket_size must be a multiple of nccl_start_alignment_factor, 2", "plans",
                               "set allgather_bucket_size to an even number"));
  return refusals;
}

namespace {

/// The engine casts whatever is floating, 4-bit weights in floating storage included: nothing stops the run.
std::optional<Diagnostic> warn_of_cast(const JobSpec& job, const Zero& zero) {
  if (!job.quantization || !is_floating(job.quantization->quant_storage)) return std::nullopt;
  const auto dtype = zero_module_dtype(job.training, zero);
  if (!dtype || *dtype == job.quantization->quant_storage) return std::nullopt;
  return refusal("zero-casts-quantized",
                 "DeepSpeed's engine casts the module to " + std::string(name_of(*dtype)) +
                     ", and with it the 4-bit weights that are stored as " +
                     std::string(name_of(job.quantization->quant_storage)) + ": it runs, but their bits are lost",
                 "quantization.quant_storage", "set quant_storage to " + std::string(name_of(*dtype)) + " or uint8");
}

std::optional<Diagnostic> warn_of_no_shards(const JobSpec& job, const Zero& zero) {
  if (!zero_takes_unfused_optimizer(job.training, zero)) return std::nullopt;
  return refusal("zero1-shards-nothing",
                 "to add gradients of bfloat16 up in float32, DeepSpeed 0.18 takes its FP16_UnfusedOptimizer in the "
                 "place of ZeRO-1's, which shards nothing",
                 path_of(zero, "data_types.grad_accum_dtype"), "leave it out, or plan zero2");
}

/// Gradients that are added up in another dtype than the model's: what is reduced are copies of them
/// (stage_1_and_2.py, get_gradient_for_reduction, copy_grads_in_partition, 0.18.3).
std::optional<Diagnostic> warn_of_own_gradients(const JobSpec& job, const Zero& zero) {
  if (zero.stage != 1 || zero_takes_unfused_optimizer(job.training, zero)) return std::nullopt;
  const auto module = zero_module_dtype(job.training, zero);
  const DType trained = module.value_or(job.adapter ? adapter_dtype(job) : job.dtype);
  const DType added_up = zero_dtype(zero.data_types.grad_accum_dtype).value_or(module.value_or(DType::float32));
  if (trained == added_up || job.cluster.world_size == 1) return std::nullopt;
  return refusal("zero1-own-gradients",
                 "DeepSpeed adds gradients of " + std::string(name_of(trained)) + " up in " +
                     std::string(name_of(added_up)) +
                     ", reduces copies of them, and drops those: each rank steps by its own gradients",
                 "training.mixed_precision", "set it to bf16 without grad_accum_dtype, or plan zero2");
}

std::optional<Diagnostic> warn_of_no_clipping(const JobSpec& job, const Zero& zero) {
  const double most = job.training.max_grad_norm;
  if (most == 0 || zero.gradient_clipping != Fillable<double>(Unsaid::left_out)) return std::nullopt;
  return refusal("zero-clips-nothing",
                 "without gradient_clipping in DeepSpeed's file nothing is clipped, whatever max_grad_norm says, " +
                     exact_number(most),
                 path_of(zero, "gradient_clipping"), "set gradient_clipping to auto");
}

}  // namespace

Diagnostics zero_warnings(const JobSpec& job, const ShardingPlan& plan) {
  Diagnostics warnings;
  const auto* zero = std::get_if<Zero>(&plan);
  if (zero == nullptr) return warnings;
  for (auto& found : {warn_of_cast(job, *zero), warn_of_no_shards(job, *zero), warn_of_own_gradients(job, *zero),
                      warn_of_no_clipping(job, *zero)})
    if (found) warnings.push_back(*found), warnings.back().severity = Severity::warning;
  return warnings;
}

}  // namespace qlp

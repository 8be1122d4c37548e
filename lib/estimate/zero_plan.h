// What accelerate and the Trainer make of a ZeRO plan.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "optim/optimizer_kind.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"
#include "shard/zero_options.h"

namespace qlp {

/// The dtype that DeepSpeed's engine casts the model to: bf16 or fp16, where "auto" is the Trainer's mixed precision.
std::optional<DType> zero_module_dtype(const TrainingSpec& training, const Zero& plan);
/// The dtype of a weight once the engine has cast the module, which leaves what is not floating as it is.
DType zero_cast(DType own, std::optional<DType> module_dtype);
/// communication_data_type, data_types: none where DeepSpeed takes that of the module.
std::optional<DType> zero_dtype(std::optional<ZeroDType> word);
/// Of master weights, by bf16_master_weights_and_grads.
DType zero_master_dtype(const Zero& plan);
/// gradient_clipping, where "auto" is max_grad_norm; 0: nothing is clipped.
double zero_gradient_clipping(const TrainingSpec& training, const Zero& plan);
/// reduce_bucket_size, where "auto" follows the model (transformers integrations/deepspeed.py).
std::int64_t zero_reduce_bucket_size(const ModelSpec& model, const Zero& plan);

/// Whether DeepSpeed's file has an optimizer of its own.
bool zero_has_own_optimizer(const Zero& plan);

/// Of what the optimizer updates, where "auto" is the Trainer's.
double zero_weight_decay(const TrainingSpec& training, const Zero& plan);

/// The job as its optimizer is judged: the Trainer makes none where DeepSpeed's file has one (transformers
/// integrations/deepspeed.py, deepspeed_optim_sched).
JobSpec zero_job(JobSpec job, const Zero& plan);

/// The optimizer of DeepSpeed's file trains in the place of the Trainer's: FusedAdam, on the host DeepSpeedCPUAdam, or
/// torch's (engine.py, _configure_basic_optimizer). Otherwise, with offload accelerate puts DeepSpeedCPUAdam in the
/// place of most (utils/deepspeed.py, map_pytorch_optim_to_deepspeed), which keeps what torch's fused AdamW does, and
/// works in place as it does. Told not to, torch's own works on the host, one tensor after another.
OptimizerKind zero_optimizer_kind(const OptimizerKind& chosen, const Zero& plan);

/// Whether FP16_UnfusedOptimizer takes ZeRO-1's place (engine.py, _do_optimizer_sanity_check, 0.18.3).
bool zero_takes_unfused_optimizer(const TrainingSpec& training, const Zero& plan);

/// Whether that is FusedAdam or FusedLion, which keep a flag of their kernel on the GPU.
bool zero_has_kernel_flag(const Zero& plan);

/// Whether that is torch's Adagrad, which has sums for parameters that it then is not given.
bool zero_makes_first_sums(const Zero& plan);

/// DeepSpeed makes torch's Adagrad anew, of its flat parts (initialize_optimizer_states); DeepSpeedCPUAdagrad makes its
/// sums in its first step.
AdagradStart zero_adagrad_start(const Zero& plan);

/// Where the module is in float16 the loss is scaled, by the keys of fp16.
ZeroLossScale zero_loss_scale(const TrainingSpec& training, const Zero& plan);

/// Of stages 1 and 2.
Result<ZeroOptions> zero_options(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp

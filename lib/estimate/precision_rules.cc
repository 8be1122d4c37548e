#include "estimate/precision_rules.h"

#include <algorithm>
#include <variant>

#include "base/refusal.h"
#include "estimate/weight_list.h"
#include "plan/gpu_catalogue.h"

namespace qlp {

/// Of float16 gradients: torch/amp/grad_scaler.py, unscale_: "Attempting to unscale FP16 gradients."; FSDP1's
/// ShardedGradScaler allows them.
Diagnostics check_precision(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  if (job.training.tf32 && !has_bf16(job.cluster.gpu.compute_capability))  // transformers training_args.py
    return {refusal("tf32-before-ampere", "--tf32 requires Ampere or a newer GPU arch, cuda>=11 and torch>=1.7",
                    "training.tf32", "leave it out")};
  if (!job.training.fp16 || (!std::holds_alternative<Single>(plan) && !std::holds_alternative<Ddp>(plan))) return {};
  const auto weights = list_weights(job, stack.load);
  const bool half = std::any_of(weights.begin(), weights.end(), [](const ListedWeight& weight) {
    return weight.trained && weight.dtype == DType::float16;
  });
  if (!half) return {};
  return {refusal("fp16-gradients",
                  "mixed precision with float16 scales the loss, and gradients in float16 cannot be scaled back",
                  "training.mixed_precision",
                  "train float32 weights: model.dtype float32, or adapters with autocast_adapter_dtype")};
}

}  // namespace qlp

#include "estimate/precision_rules.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "estimate/weight_list.h"

namespace qlp {

/// torch/amp/grad_scaler.py, unscale_: "Attempting to unscale FP16 gradients."; FSDP1's ShardedGradScaler allows them.
Diagnostics check_precision(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  if (!job.training.fp16 || (!std::holds_alternative<Single>(plan) && !std::holds_alternative<Ddp>(plan))) return {};
  const auto weights = list_weights(job, stack.load());
  const bool half = std::any_of(weights.begin(), weights.end(), [](const ListedWeight& weight) {
    return weight.trained && weight.dtype == DType::float16;
  });
  if (!half) return {};
  Diagnostic refusal;
  refusal.code = "fp16-gradients";
  refusal.message = "mixed precision with float16 scales the loss, and gradients in float16 cannot be scaled back";
  refusal.key_path = "training.mixed_precision";
  refusal.hint = "train float32 weights: model.dtype float32, or adapters with autocast_adapter_dtype";
  return {std::move(refusal)};
}

}  // namespace qlp

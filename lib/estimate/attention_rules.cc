#include "estimate/attention_rules.h"

#include <utility>

#include "base/refusal.h"
#include "model/family_design.h"

namespace qlp {
namespace {

/// flash_attn's own conditions (csrc/flash_attn/flash_api.cpp).
Diagnostics check_flash_attention(const JobSpec& job) {
  if (job.training.attention != Attention::flash_attention_2) return {};
  Diagnostics refusals;
  const auto refuse = [&](std::string message) {
    refusals.push_back(
        refusal("flash-attention-refused", std::move(message), "training.attn_implementation", "use sdpa"));
  };
  if (job.model.head_dim > 256) refuse("FlashAttention 2 takes heads up to 256 wide");
  if (job.dtype == DType::float32 && !job.training.mixed_precision())
    refuse("FlashAttention 2 takes float16 and bfloat16 only");
  if (job.cluster.gpu.compute_capability < 80) refuse("FlashAttention 2 needs compute capability 8.0");
  return refusals;
}

}  // namespace

Diagnostics check_attention(const JobSpec& job, const StackProfile& stack) {
  if (auto refusals = check_flash_attention(job); !refusals.empty()) return refusals;
  if (design_of(job.model.family).attention_sinks && job.training.attention != Attention::eager)
    return {refusal("attention-refused",
                    job.training.attention == Attention::sdpa
                        ? "transformers has no sdpa for attention with sinks (modeling_gpt_oss.py, _supports_sdpa)"
                        : "flash_attn 2 has no sinks; the kernels that have them are not planned yet",
                    "training.attn_implementation", "use eager")};
  if (job.model.family != Family::gemma2 || job.training.attention != Attention::sdpa ||
      stack.models.gemma2_takes_sdpa())
    return {};
  return {refusal("attention-refused", "transformers refuses sdpa for Gemma 2, whose scores are capped",
                  "training.attn_implementation", "use eager")};
}

Diagnostics attention_warnings(const JobSpec& job, const StackProfile& stack) {
  const bool hopper = job.cluster.gpu.compute_capability / 10 == 9;
  if (!hopper || job.training.attention != Attention::sdpa || !stack.torch.prefers_cudnn_attention()) return {};
  Diagnostic warning =
      refusal("attention-cudnn",
              "this torch prefers cuDNN's attention on Hopper, whose workspace is not known; the "
              "figures are those of FlashAttention",
              "training.attn_implementation", "attn_implementation: flash_attention_2 runs what is planned");
  warning.severity = Severity::warning;
  return {std::move(warning)};
}

}  // namespace qlp

#include "estimate/attention_rules.h"

namespace qlp {

Diagnostics check_attention(const JobSpec& job, const StackProfile& stack) {
  if (job.model.family != Family::gemma2 || job.training.attention != Attention::sdpa || stack.gemma2_takes_sdpa())
    return {};
  return {{.code = "attention-refused",
           .message = "transformers refuses sdpa for Gemma 2, whose scores are capped",
           .key_path = "training.attn_implementation",
           .hint = "use eager"}};
}

Diagnostics attention_warnings(const JobSpec& job, const StackProfile& stack) {
  const bool hopper = job.cluster.gpu.compute_capability / 10 == 9;
  if (!hopper || job.training.attention != Attention::sdpa || !stack.prefers_cudnn_attention()) return {};
  return {{.severity = Severity::warning,
           .code = "attention-cudnn",
           .message = "this torch prefers cuDNN's attention on Hopper, whose workspace is not known; the figures are "
                      "those of FlashAttention",
           .key_path = "training.attn_implementation",
           .hint = "attn_implementation: flash_attention_2 runs what is planned"}};
}

}  // namespace qlp

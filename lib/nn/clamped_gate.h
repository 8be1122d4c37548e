// The gate of GPT-OSS's experts: (up + 1) * gate * sigmoid(alpha * gate), both clamped.
#pragma once

#include "tensor/context.h"

namespace qlp {

/// What Python's names hold when it is done.
struct ClampedGate {
  Tensor gate, up, glu, out;  ///< [S, I]
};

/// gate_up [S, 2 I], in which gate and up alternate (modeling_gpt_oss.py, GptOssExperts; 4.57 and 5.24).
void apply_clamped_gate(Context& ctx, const Tensor& gate_up, ClampedGate& names);

}  // namespace qlp

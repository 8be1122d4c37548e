// Liger's Triton kernels in place of transformers' norms, rotary embedding and gated product (use_liger_kernel), as
// autograd functions (liger_kernel/ops, 0.6.2 and 0.8.5).
#pragma once

#include "autograd/node.h"
#include "nn/rotary.h"

namespace qlp {

/// How a norm was replaced.
struct LigerNorm {
  bool in_place = true;           ///< the gradient is written over the one that arrives
  bool skips_frozen_gain = true;  ///< no gradient is worked out for a weight that is not trained
};

/// x / root(mean(x^2) + eps) * (weight + offset)
struct NormNumbers {
  double eps = 1e-6, offset = 0;
};
/// LigerRMSNormFunction: x [..., H] with weight [H].
Tensor liger_rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, const LigerNorm& options,
                      const NormNumbers& numbers);

/// LigerRopeFunction: turns q and k [B, heads, S, D] where they lie.
Rotated liger_rope(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables);

/// LigerSiLUMulFunction and LigerGELUMulFunction: act(gate) * up; the gradients are written over both.
enum class Activation : std::uint8_t { silu, gelu };
Tensor liger_gated_product(Context& ctx, const Tensor& gate, const Tensor& up, Activation activation);

}  // namespace qlp

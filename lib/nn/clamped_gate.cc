#include "nn/clamped_gate.h"

#include "autograd/interleave.h"
#include "autograd/pointwise.h"

namespace qlp {

void apply_clamped_gate(Context& ctx, const Tensor& gate_up, ClampedGate& names) {
  constexpr double kAlpha = 1.702, kLimit = 7.0;  // GptOssConfig: swiglu_alpha, swiglu_limit
  auto& [gate, up, glu, out] = names;
  gate = every_other(ctx, gate_up, 0), up = every_other(ctx, gate_up, 1);
  gate = clamp_at_most(ctx, gate, kLimit);
  up = clamp_within(ctx, up, kLimit);
  {
    Tensor weights = scale(ctx, gate, kAlpha);
    weights = sigmoid(ctx, weights);
    glu = mul(ctx, gate, weights);
  }
  const Tensor more = add_scalar(ctx, up, 1);
  out = mul(ctx, more, glu);
}

}  // namespace qlp

// The gradient of a bias as bitsandbytes works it out for quantized weights.
#pragma once

#include "tensor/context.h"

namespace qlp {

/// grad_output.sum(0, dtype=...): over the first axis alone, so that of a batch of sequences one of the bias's values
/// for each position is left, which autograd sums up (bitsandbytes autograd/_functions.py, 0.45 to 0.50).
Tensor bias_gradient(Context& ctx, const Tensor& grad, DType dtype);

}  // namespace qlp

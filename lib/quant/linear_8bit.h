// The layer bitsandbytes.nn.Linear8bitLt with has_fp16_weights off, and the product that it runs.
#pragma once

#include "autograd/node.h"
#include "quant/quant_state.h"

namespace qlp {

/// An 8-bit weight as a layer holds it, in `state`: [N, K] of int8 in `whole`, a scale for each row in `absmax`. The
/// state must outlive the graph.
struct EightBitWeight {
  const QuantState* state = nullptr;
};

/// Linear8bitLt.forward (bitsandbytes nn/modules.py; autograd/_functions.py, MatMul8bitLt; 0.43 to 0.50): x [..., K] is
/// quantized row by row. Where a gradient will flow to it, it is kept until the graph goes, as an attribute that no
/// hook on saved tensors sees. A bias of another dtype than x is changed for good. With `threshold` above 0 columns
/// with outliers go another way: taken to be none, as it depends on values.
Tensor linear_8bit(Context& ctx, const Tensor& x, const EightBitWeight& weight, const Tensor& bias, double threshold);

}  // namespace qlp

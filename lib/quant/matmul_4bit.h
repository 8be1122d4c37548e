// The product with a 4-bit weight, as an autograd function that keeps neither the weight in 16 bit nor its input.
#pragma once

#include "autograd/node.h"
#include "quant/quant_behaviour.h"
#include "quant/quant_state.h"

namespace qlp {

/// A 4-bit weight as a layer holds it. The statistics must outlive the graph.
struct FourBitWeight {
  Tensor packed;
  const QuantState* state = nullptr;
};

/// bitsandbytes.matmul_4bit: x [..., K] with a weight [N, K] and a bias [N] or none. Under autocast the dequantized
/// weight and the input are cast as F.linear casts its operands; the fused kernel sees no autocast.
Tensor matmul_4bit(Context& ctx, const Tensor& x, const FourBitWeight& weight, const Tensor& bias,
                   const QuantBehaviour& behaviour);

}  // namespace qlp

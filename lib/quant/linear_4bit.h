// The layer bitsandbytes.nn.Linear4bit.
#pragma once

#include "quant/matmul_4bit.h"

namespace qlp {

struct FourBitCompute {
  DType compute_dtype = DType::float32;  ///< bnb_4bit_compute_dtype
  QuantBehaviour behaviour;
};

/// Linear4bit.forward: x [..., K] is cast to the compute dtype, the result back. A `bias` of another dtype is changed
/// for good: its storage is replaced.
Tensor linear_4bit(Context& ctx, const Tensor& x, const FourBitWeight& weight, const Tensor& bias,
                   const FourBitCompute& compute);

}  // namespace qlp

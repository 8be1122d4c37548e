// Whether bitsandbytes multiplies with its fused 4-bit kernel, which needs no dequantized weight.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "tensor/device.h"

namespace qlp {

/// x [m, k] with a weight [n, k].
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
};

/// The choice of the operator gemm_4bit on CUDA for blocks of 64 weights (bitsandbytes 0.50.0 to 0.50.2,
/// backends/cuda/ops.py: _gemm_4bit_use_custom_cuda and its caller).
bool uses_fused_gemm_4bit(const GemmShape& shape, DType dtype, const DeviceTraits& traits);

}  // namespace qlp

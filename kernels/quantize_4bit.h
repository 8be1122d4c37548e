// bitsandbytes' 4-bit formats: two codes a byte, the first in the high half, and the greatest absolute value of each
// block. Arrays lie densely.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// Bytes of `packed`: half the numbers of x, rounded up. absmax [blocks] float32. blocksize: a multiple of 64.
cudaError_t quantize_4bit(void* packed, float* absmax, const View& x, std::int64_t blocksize, bool nf4,
                          cudaStream_t stream);

/// code [16] float32.
cudaError_t dequantize_4bit(const View& out, const void* packed, const float* absmax, const float* code,
                            std::int64_t blocksize, cudaStream_t stream);

}  // namespace qlp::kernels

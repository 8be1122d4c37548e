// Blockwise quantization to the codes of a table of 256 values, as bitsandbytes does for the statistics of 4-bit
// weights and for the moments of optimizers. Arrays lie densely.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// absmax [blocks] float32; code [256] float32, ascending.
cudaError_t quantize_8bit(std::uint8_t* out, float* absmax, const float* code, const View& x, std::int64_t blocksize,
                          cudaStream_t stream);
cudaError_t dequantize_8bit(const View& out, const std::uint8_t* codes, const float* absmax, const float* code,
                            std::int64_t blocksize, cudaStream_t stream);

/// scales [n]: the greatest absolute value of each row of x [n, k]; out = round(127 x / scale).
cudaError_t quantize_rows_8bit(std::int8_t* out, float* scales, const View& x, cudaStream_t stream);

}  // namespace qlp::kernels

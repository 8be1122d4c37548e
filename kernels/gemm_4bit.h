// The product with a 4-bit weight of which no dense copy is made.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// A packed weight, row-major; where `absmax_codes` is given its absmax values are
/// offset + nested_code[code] * nested_absmax, else those of `absmax`.
struct FourBitWeight {
  const std::uint8_t* packed = nullptr;
  const float* code = nullptr;  ///< [16]
  const float* absmax = nullptr;
  const std::uint8_t* absmax_codes = nullptr;
  const float *offset = nullptr, *nested_absmax = nullptr, *nested_code = nullptr;
  std::int64_t rows = 0, columns = 0;
};

/// out [M, rows] = x [M, columns] times the transpose of the weight; sums in float32.
cudaError_t gemm_4bit(const View& out, const View& x, const FourBitWeight& weight, cudaStream_t stream);

}  // namespace qlp::kernels

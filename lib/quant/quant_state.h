// bitsandbytes' 4-bit storage: the packed weight, and the statistics that stay beside it on every rank.
// Sizes from bitsandbytes functional.py (quantize_4bit, QuantState) and backends/cuda/ops.py, 0.43 to 0.50.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/rounding.h"
#include "base/shape.h"
#include "tensor/context.h"

namespace qlp {

struct FourBitFormat {
  static constexpr std::int64_t kBlocksize = 64;         ///< weights per absmax
  static constexpr std::int64_t kNestedBlocksize = 256;  ///< absmax values per nested absmax
  bool double_quant = false;
  DType storage = DType::uint8;  ///< dtype of the tensor that carries the packed values
  bool nf4 = true;               ///< else fp4
};

constexpr std::int64_t absmax_count(std::int64_t weights) { return ceil_div(weights, FourBitFormat::kBlocksize); }
constexpr std::int64_t nested_absmax_count(std::int64_t weights) {
  return ceil_div(absmax_count(weights), FourBitFormat::kNestedBlocksize);
}
/// Elements of the packed tensor, whose shape is [that, 1].
constexpr std::int64_t packed_count(std::int64_t weights, DType storage) {
  return (weights + 1) / (2 * static_cast<std::int64_t>(size_of(storage)));
}

/// The statistics of one quantized weight; plain attributes in bitsandbytes, so no runtime shards them.
struct QuantState {
  Shape shape;                    ///< of the weight
  DType dtype = DType::bfloat16;  ///< what dequantize gives
  bool double_quant = false;
  bool eight_bit = false;
  Tensor absmax;         ///< float32 per block, or uint8 with double quant; of 8-bit weights float32 per row (SCB)
  Tensor code;           ///< 16 float32
  Tensor offset;         ///< float32 scalar, with double quant
  Tensor nested_absmax;  ///< float32 per 256 absmax values, with double quant
  Tensor nested_code;    ///< 256 float32, with double quant
  Tensor whole;          ///< of an 8-bit weight CB, a second name that no runtime knows: it is not cut
};

}  // namespace qlp

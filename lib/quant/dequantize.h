// The 16 or 32-bit weight made from the packed one.
#pragma once

#include "quant/quant_state.h"

namespace qlp {

/// The packed weight and its statistics are read from the GPU's memory.
void touch_packed(Context& ctx, const QuantState& state);

/// functional.dequantize_4bit: a new tensor of the weight's shape in the dtype that it had when it was quantized. With
/// double quant the float32 absmax values exist beside it until it is done.
Tensor dequantize_4bit(Context& ctx, const Tensor& packed, const QuantState& state);

/// The same in the way of gemm_4bit's fallback (backends/cuda/ops.py, 0.50): straight into `dtype`, with two
/// float32 copies of the absmax values under double quant, which the caller keeps until it has multiplied.
struct DequantizedWeight {
  Tensor weight, absmax, shifted_absmax;  ///< freed from the last to the first
};
DequantizedWeight dequantize_for_gemm(Context& ctx, const Tensor& packed, const QuantState& state, DType dtype);

/// The largest number of an int8 in use.
inline constexpr double kMostOfInt8 = 127;

/// functional.int8_vectorwise_dequant (0.45), and PEFT's own words for it before: float32, by way of another float32.
Tensor dequantize_8bit(Context& ctx, const Tensor& packed, const QuantState& state);

}  // namespace qlp

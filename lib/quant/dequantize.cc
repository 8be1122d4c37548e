#include "quant/dequantize.h"

#include "tensor/arithmetic.h"
#include "tensor/factories.h"

namespace qlp {

void touch_packed(Context& ctx, const QuantState& state) {
  touch(ctx, static_cast<std::uint64_t>(packed_count(state.shape.numel(), DType::uint8)));
  touch(ctx, state.absmax);
}

Tensor dequantize_4bit(Context& ctx, const QuantState& state) {
  touch_packed(ctx, state);
  const Scoped category(ctx.category, Category::workspace);
  Tensor absmax;  // the offset is added in place
  if (state.double_quant) absmax = empty_like(ctx, state.absmax, DType::float32, Op::dequantize_blockwise);
  return empty(ctx, state.shape, state.dtype, Op::dequantize_4bit);
}

DequantizedWeight dequantize_for_gemm(Context& ctx, const QuantState& state, DType dtype) {
  touch_packed(ctx, state);
  const Scoped category(ctx.category, Category::workspace);
  DequantizedWeight out;
  if (state.double_quant) {
    out.absmax = empty_like(ctx, state.absmax, DType::float32, Op::dequantize_blockwise);
    out.shifted_absmax = empty_like(ctx, out.absmax, Op::add);
  }
  out.weight = empty(ctx, state.shape, dtype, Op::dequantize_4bit);
  return out;
}

}  // namespace qlp

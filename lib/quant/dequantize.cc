#include "quant/dequantize.h"

#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// nested code * nested absmax of each absmax value
void dequantize_absmax(Context& ctx, const Tensor& out, const QuantState& state) {
  if (Kernels* kernels = ctx.kernels(out))
    kernels->dequantize_8bit(
        ctx.stream, array_of(out), array_of(state.absmax),
        {array_of(state.nested_absmax), array_of(state.nested_code), FourBitFormat::kNestedBlocksize});
}

void dequantize(Context& ctx, const Tensor& out, const Tensor& packed, const Tensor& absmax, const QuantState& state) {
  if (Kernels* kernels = ctx.kernels(out))
    kernels->dequantize_4bit(ctx.stream, array_of(out), array_of(packed),
                             {array_of(absmax), array_of(state.code), FourBitFormat::kBlocksize});
}

}  // namespace

void touch_packed(Context& ctx, const QuantState& state) {
  touch(ctx, static_cast<std::uint64_t>(packed_count(state.shape.numel(), DType::uint8)));
  touch(ctx, state.absmax);
}

Tensor dequantize_4bit(Context& ctx, const Tensor& packed, const QuantState& state) {
  touch_packed(ctx, state);
  const Scoped category(ctx.category, Category::workspace);
  Tensor absmax = state.absmax;
  if (state.double_quant) {
    absmax = empty_like(ctx, state.absmax, DType::float32, Op::dequantize_blockwise);
    dequantize_absmax(ctx, absmax, state);
    compute(ctx, Binary::add, absmax, absmax, state.offset);  // in place
  }
  Tensor out = empty(ctx, state.shape, state.dtype, Op::dequantize_4bit);
  dequantize(ctx, out, packed, absmax, state);
  return out;
}

Tensor dequantize_8bit(Context& ctx, const Tensor& packed, const QuantState& state) {
  touch(ctx, packed), touch(ctx, state.absmax);
  const Scoped category(ctx.category, Category::workspace);
  const Tensor scaled = empty(ctx, state.shape, DType::float32, Op::mul);
  compute(ctx, Binary::mul, scaled, packed, state.absmax.view({state.shape[0], 1}));
  Tensor out = empty(ctx, state.shape, DType::float32, Op::mul);
  compute(ctx, Unary::mul, out, scaled, 1 / kMostOfInt8);
  return out;
}

DequantizedWeight dequantize_for_gemm(Context& ctx, const Tensor& packed, const QuantState& state, DType dtype) {
  touch_packed(ctx, state);
  const Scoped category(ctx.category, Category::workspace);
  DequantizedWeight out;
  if (state.double_quant) {
    out.absmax = empty_like(ctx, state.absmax, DType::float32, Op::dequantize_blockwise);
    dequantize_absmax(ctx, out.absmax, state);
    out.shifted_absmax = empty_like(ctx, out.absmax, Op::add);
    compute(ctx, Binary::add, out.shifted_absmax, out.absmax, state.offset);
  }
  out.weight = empty(ctx, state.shape, dtype, Op::dequantize_4bit);
  dequantize(ctx, out.weight, packed, state.double_quant ? out.shifted_absmax : state.absmax, state);
  return out;
}

}  // namespace qlp

#include "quant/quantize.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/routing_kernels.h"

namespace qlp {

QuantizedWeight EightBitQuantizer::quantize(Context& ctx, const Tensor& weight) {
  QuantizedWeight out;
  out.state.shape = weight.shape();
  out.state.dtype = weight.dtype();
  out.state.eight_bit = true;
  const Tensor half = empty_like(ctx, weight, DType::float16, Op::to_copy);  // by way of the host
  {
    const Scoped category(ctx.category, Category::quant_state);
    out.state.absmax = empty(ctx, {weight.size(0)}, DType::float32, Op::quantize_blockwise);
  }
  out.packed = empty_like(ctx, weight, DType::int8, Op::quantize_blockwise);
  out.state.whole = out.packed.alias();
  copy_into(ctx, half, weight);
  if (auto* kernels = routing_kernels(ctx, half))
    kernels->quantize_rows_8bit(ctx.stream, array_of(out.packed), array_of(out.state.absmax), array_of(half));
  return out;
}

}  // namespace qlp

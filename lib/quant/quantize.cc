#include "quant/quantize.h"

#include <utility>

#include "quant/codes.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

constexpr std::int64_t kCodes = 16;          // values of four bits
constexpr std::int64_t kDynamicCodes = 256;  // values of the 8-bit dynamic type

Tensor make(Context& ctx, Category category, const Shape& shape, DType dtype, Op op) {
  const Scoped scope(ctx.category, category);
  return empty(ctx, shape, dtype, op);
}

/// get_4bit_type: the table, divided by its greatest absolute value.
Tensor code_table(Context& ctx, bool nf4) {
  Tensor code = make(ctx, Category::quant_state, {kCodes}, DType::float32, Op::quantize_4bit);
  Tensor absolute = make(ctx, Category::workspace, {kCodes}, DType::float32, Op::abs);
  const Tensor greatest = make(ctx, Category::workspace, {}, DType::float32, Op::max);
  absolute.reset();
  upload(ctx, code, nf4 ? nf4_values() : fp4_values());
  return code;
}

}  // namespace

QuantizedWeight FourBitQuantizer::quantize(Context& ctx, const Tensor& weight) {
  const std::int64_t n = weight.numel();
  const Category absmax_category = format_.double_quant ? Category::workspace : Category::quant_state;

  QuantizedWeight out;
  out.state.shape = weight.shape();
  out.state.dtype = weight.dtype();
  out.state.double_quant = format_.double_quant;
  Tensor absmax = make(ctx, absmax_category, {absmax_count(n)}, DType::float32, Op::quantize_4bit);
  out.packed =
      make(ctx, Category::parameters, {packed_count(n, format_.storage), 1}, format_.storage, Op::quantize_4bit);
  out.state.code = code_table(ctx, format_.nf4);
  if (Kernels* kernels = ctx.kernels(weight))
    kernels->quantize_4bit(ctx.stream, array_of(out.packed), {array_of(absmax), {}, FourBitFormat::kBlocksize},
                           array_of(weight), format_.nf4);
  if (format_.double_quant)
    quantize_statistics(ctx, std::move(absmax), out.state);
  else
    out.state.absmax = std::move(absmax);
  return out;
}

void FourBitQuantizer::quantize_statistics(Context& ctx, Tensor absmax, QuantState& state) {
  const std::int64_t count = absmax.numel();
  const std::int64_t nested_count = nested_absmax_count(state.shape.numel());
  state.offset = make(ctx, Category::quant_state, {}, DType::float32, Op::mean);
  full_reduction_scratch(ctx, count, Op::mean);
  reduce_all(ctx, Reduce::sum, state.offset, absmax, 1 / static_cast<double>(count));

  Tensor shifted = absmax;
  if (behaviour_.own_statistics) shifted = make(ctx, Category::workspace, {count}, DType::float32, Op::sub);
  compute(ctx, Binary::add, shifted, absmax, state.offset, -1);
  if (!dynamic_map_.defined()) {
    dynamic_map_ = make(ctx, Category::quant_state, {kDynamicCodes}, DType::float32, Op::to_copy);
    upload(ctx, dynamic_map_, dynamic_values(true));
  }
  state.nested_absmax = make(ctx, Category::quant_state, {nested_count}, DType::float32, Op::quantize_blockwise);
  state.absmax = make(ctx, Category::quant_state, {count}, DType::uint8, Op::quantize_blockwise);
  state.nested_code = behaviour_.own_statistics
                          ? make(ctx, Category::quant_state, {kDynamicCodes}, DType::float32, Op::to_copy)
                          : dynamic_map_;
  if (Kernels* kernels = ctx.kernels(shifted)) {
    if (behaviour_.own_statistics) copy_into(ctx, state.nested_code, dynamic_map_);
    kernels->quantize_8bit(
        ctx.stream, array_of(state.absmax),
        {array_of(state.nested_absmax), array_of(state.nested_code), FourBitFormat::kNestedBlocksize},
        array_of(shifted));
  }
  shifted.reset();
  absmax.reset();
}

}  // namespace qlp

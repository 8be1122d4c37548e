#include "quant/linear_8bit.h"

#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/record.h"
#include "autograd/views.h"
#include "quant/bias_gradient.h"
#include "quant/dequantize.h"
#include "quant/replace_data.h"
#include "tensor/arithmetic.h"
#include "tensor/cast.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"
#include "tensor/routing_kernels.h"

namespace qlp {
namespace {

constexpr std::int64_t kAligned = 4;  // what cuBLASLt asks of the inner dimension (backends/cuda/ops.py)

/// MatMul8bitLt.backward: the weight in the dtype of the input, scaled in place.
struct MatMul8bitLtBackward final : Node {
  using Node::Node;
  EightBitWeight weight;
  Tensor input;
  DType bias_dtype = DType::float32;

  Grads backward(Context& ctx, Grads& grads) override {
    Grads out(2);
    if (wants(1)) out[1] = bias_gradient(ctx, grads[0], bias_dtype);
    if (!wants(0)) return out;
    const Shape& shape = weight.state->shape;
    const Tensor grad = contiguous(ctx, grads[0]);
    Tensor dense;
    {
      const Scoped category(ctx.category, Category::workspace);
      dense = empty_like(ctx, weight.state->whole, input.dtype(), Op::to_copy);
      copy_into(ctx, dense, weight.state->whole);
      const Tensor scales = empty(ctx, {shape[0], 1}, DType::float32, Op::mul);
      compute(ctx, Unary::mul, scales, weight.state->absmax.view({shape[0], 1}), 1 / kMostOfInt8);
      compute(ctx, Binary::mul, dense, dense, scales);
    }
    const Tensor rows = cast(ctx, grad, input.dtype());
    out[0] = gemm(ctx, {rows}, {dense}, input.dtype()).view(grad.shape().with(-1, shape[1]));
    out[0].impl()->is_view = true;  // .view(ctx.grad_shape)
    return out;
  }
};

/// int8_vectorwise_quant.
struct QuantizedRows {
  Tensor values, scales;
};

QuantizedRows quantize_rows(Context& ctx, const Tensor& half, double threshold) {
  QuantizedRows out;
  out.scales = empty(ctx, {half.size(0)}, DType::float32, Op::quantize_blockwise);
  out.values = empty_like(ctx, half, DType::int8, Op::quantize_blockwise);
  if (auto* kernels = routing_kernels(ctx, half))
    kernels->quantize_rows_8bit(ctx.stream, array_of(out.values), array_of(out.scales), array_of(half));
  if (threshold <= 0) return out;
  Tensor absolute = empty_like(ctx, half, Op::abs);
  const Tensor outliers = empty_like(ctx, half, DType::boolean, Op::ge);
  absolute.reset();
  {
    const Tensor any = empty(ctx, {}, DType::boolean, Op::any);
    full_reduction_scratch(ctx, half.numel(), Op::any, 1);
    ctx.device.synchronize();
  }
  return out;
}

/// int8_linear_matmul.
Tensor integer_product(Context& ctx, const Tensor& values, const EightBitWeight& weight) {
  const std::int64_t rows = values.size(0), out_features = weight.state->shape[0], k = values.size(1);
  Tensor out = empty(ctx, {rows, out_features}, DType::int32, Op::mm);
  if (k % kAligned == 0) {
    multiply(ctx, rows, out_features, k, DType::int8);
    if (Kernels* kernels = ctx.kernels(out))
      kernels->gemm(ctx.stream, array_of(out), array_of(values), array_of(weight.state->whole.transpose(0, 1)), 1, 0);
    return out;
  }
  const Tensor a = cast(ctx, values, DType::float32), b = cast(ctx, weight.state->whole, DType::float32);
  Tensor product = gemm(ctx, {a}, {.tensor = b, .turned = true}, DType::float32);
  const Tensor converted = cast(ctx, product, DType::int32);
  copy_into(ctx, out, converted);
  return out;
}

/// int8_scaled_mm: integers, what the kernel makes of them in float16, and that in the dtype of the input.
Tensor scaled_product(Context& ctx, const QuantizedRows& rows, const EightBitWeight& weight, DType dtype) {
  const Scoped category(ctx.category, Category::workspace);
  const Tensor integers = integer_product(ctx, rows.values, weight);
  const Tensor half = empty_like(ctx, integers, DType::float16, Op::dequantize_blockwise);
  compute(ctx, Binary::mul, half, integers, weight.state->absmax, 1 / (kMostOfInt8 * kMostOfInt8));
  compute(ctx, Binary::mul, half, half, rows.scales.view({rows.scales.numel(), 1}));
  const Scoped result(ctx.category, Category::activations);
  return cast(ctx, half, dtype);
}

Tensor product(Context& ctx, const Tensor& x, const EightBitWeight& weight, double threshold) {
  QuantizedRows rows;
  {
    const Scoped category(ctx.category, Category::workspace);
    rows = quantize_rows(ctx, cast(ctx, x, DType::float16), threshold);
  }
  return scaled_product(ctx, rows, weight, x.dtype());
}

}  // namespace

Tensor linear_8bit(Context& ctx, const Tensor& x, const EightBitWeight& weight, const Tensor& bias, double threshold) {
  replace_data(ctx, bias, x.dtype());
  const auto node = record<MatMul8bitLtBackward>(ctx, x, bias);
  Tensor out;
  {
    const Scoped no_grad(ctx.grad_enabled, false);
    const Tensor rows = contiguous(ctx, x).view({x.numel() / x.size(-1), x.size(-1)});
    out = product(ctx, rows, weight, threshold).view(x.shape().with(-1, weight.state->shape[0]));
    if (bias.defined()) compute(ctx, Binary::add, out, out, bias);  // by the kernel of the product
    if (node && x.requires_grad()) node->weight = weight, node->input = rows;
    if (node && bias.defined()) node->bias_dtype = bias.dtype();
  }
  set_history(out, node);
  return out;
}

}  // namespace qlp

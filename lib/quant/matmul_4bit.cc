#include "quant/matmul_4bit.h"

#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/record.h"
#include "autograd/views.h"
#include "quant/bias_gradient.h"
#include "quant/dequantize.h"
#include "quant/gemm_dispatch.h"
#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// dequantize_4bit(B, state).to(dtype)
Tensor dequantized_as(Context& ctx, const FourBitWeight& weight, DType dtype) {
  const Scoped category(ctx.category, Category::workspace);
  return to(ctx, dequantize_4bit(ctx, weight.packed, *weight.state), dtype);
}

/// MatMul4Bit. What it keeps are attributes of its context: hooks on saved tensors do not see them, and they stay until
/// the graph goes, so there is nothing to release.
struct MatMul4BitBackward final : Node {
  using Node::Node;
  FourBitWeight weight;
  Tensor input;
  DType bias_dtype = DType::float32;

  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor& grad = grads[0];
    Grads out(2);
    if (wants(1)) out[1] = bias_gradient(ctx, grad, bias_dtype);
    if (wants(0)) {
      const Tensor dense = dequantized_as(ctx, weight, grad.dtype());
      out[0] = gemm(ctx, {grad}, {dense}, grad.dtype()).view(grad.shape().with(-1, weight.state->shape[1]));
      out[0].impl()->is_view = false;  // torch.matmul's _unsafe_view has no base
    }
    return out;
  }
};

Tensor fused_product(Context& ctx, const Tensor& x, const FourBitWeight& weight, const Tensor& bias) {
  const QuantState& state = *weight.state;
  const Tensor rows = contiguous(ctx, x);
  const std::int64_t out_features = state.shape[0];
  multiply(ctx, x.numel() / x.size(-1), out_features, x.size(-1), x.dtype());
  touch_packed(ctx, state);
  Tensor out = empty(ctx, x.shape().with(-1, out_features), x.dtype(), Op::mm);
  if (Kernels* kernels = ctx.kernels(out)) {
    const FourBitArrays arrays{
        array_of(weight.packed),       array_of(state.absmax),      array_of(state.code), array_of(state.offset),
        array_of(state.nested_absmax), array_of(state.nested_code), state.shape};
    const Shape flat{rows.numel() / rows.size(-1), rows.size(-1)};
    kernels->gemm_4bit(ctx.stream, array_of(out.view(flat.with(-1, out_features))), array_of(rows.view(flat)), arrays);
    if (bias.defined()) compute(ctx, Binary::add, out, out, bias);  // as the kernel does on its way out
  }
  return out;
}

Tensor product(Context& ctx, const Tensor& x, const FourBitWeight& weight, const Tensor& bias,
               const QuantBehaviour& behaviour) {
  const QuantState& state = *weight.state;
  if (!behaviour.fused_gemm) return linear(ctx, x, dequantized_as(ctx, weight, x.dtype()), bias);
  const GemmShape shape{x.numel() / x.size(-1), state.shape[0], state.shape[1]};
  if (uses_fused_gemm_4bit(shape, x.dtype(), ctx.device.traits())) return fused_product(ctx, x, weight, bias);
  const DequantizedWeight dense = dequantize_for_gemm(ctx, weight.packed, state, x.dtype());
  return linear(ctx, x, dense.weight, bias);
}

}  // namespace

Tensor matmul_4bit(Context& ctx, const Tensor& x, const FourBitWeight& weight, const Tensor& bias,
                   const QuantBehaviour& behaviour) {
  const auto node = record<MatMul4BitBackward>(ctx, x, bias);
  Tensor out;
  {
    const Scoped no_grad(ctx.grad_enabled, false);
    out = product(ctx, x, weight, bias, behaviour);
  }
  if (node) {
    node->weight = {weight.packed.alias(), weight.state};  // B.view(-1, 1)
    if (behaviour.keeps_input) node->input = x;
    if (bias.defined()) node->bias_dtype = bias.dtype();
  }
  set_history(out, node);
  return out;
}

}  // namespace qlp

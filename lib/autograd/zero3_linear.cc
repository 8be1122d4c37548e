#include "autograd/zero3_linear.h"

#include <utility>

#include "autograd/matmul.h"
#include "autograd/record.h"
#include "autograd/views.h"
#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

/// sums [features] of a gradient [.., features] that may not lie densely.
void sum_rows(Context& ctx, const Tensor& sums, const Tensor& grad) {
  Shape shape;
  for (std::size_t i = 0; i + 1 < grad.shape().rank(); ++i) shape.push_back(1);
  shape.push_back(sums.numel());
  compute(ctx, Reduce::sum, sums.view(shape), grad);
}

struct Zero3LinearBackward final : Node {
  using Node::Node;
  SavedTensor x, weight;
  Shape x_shape;
  DType dtype = DType::float32;

  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor& grad = grads[0];
    const Tensor self = x.unpack(ctx), other = weight.unpack(ctx);
    const std::int64_t features = grad.size(-1);
    Grads out(3);
    if (wants(1)) {
      const Tensor dense = contiguous(ctx, grad);
      out[1] = gemm(ctx, {dense}, {other}, dtype).view(x_shape);
      out[1].impl()->is_view = false;  // torch.matmul's _unsafe_view has no base
      touch_weight(ctx, other);
    }
    if (wants(0)) {
      const Tensor dense = contiguous(ctx, grad);
      out[0] = gemm(ctx, {.tensor = dense, .turned = true}, {self}, dtype);
      touch(ctx, out[0]);
    }
    if (wants(2)) {
      out[2] = empty(ctx, {features}, grad.dtype(), Op::sum);
      reduction_scratch(ctx, grad, (1U << (grad.shape().rank() - 1)) - 1, Op::sum);
      if (ctx.kernels(grad)) sum_rows(ctx, out[2], grad);
    }
    return out;
  }
  void release() override { x.release(), weight.release(); }
};

}  // namespace

Ref<PackedTensor> Zero3LinearFunction::pack(Context&, const Tensor& tensor) { return make_ref<KeptTensor>(tensor); }

Tensor linear_for_zero3(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto node = record<Zero3LinearBackward>(ctx, weight, x, bias);
  if (node) {
    node->x_shape = x.shape(), node->dtype = x.dtype();
    node->x.save(ctx, x), node->weight.save(ctx, weight);
  }
  const Scoped no_grad(ctx.grad_enabled, false);
  const Tensor dense = contiguous(ctx, x);
  Tensor out =
      gemm(ctx, {dense}, {.tensor = weight, .turned = true}, x.dtype()).view(x.shape().with(-1, weight.size(0)));
  out.impl()->is_view = false;
  touch_weight(ctx, weight);
  if (bias.defined()) compute(ctx, Binary::add, out, out, bias);  // in place
  set_history(out, node);
  return out;
}

}  // namespace qlp

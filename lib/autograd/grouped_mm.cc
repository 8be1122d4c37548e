#include "autograd/grouped_mm.h"

#include "autograd/record.h"
#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/routing_kernels.h"

namespace qlp {
namespace {

/// GroupedMmBackward0 and the transposition that runs right after it.
struct GroupedMmBackward final : Node {
  using Node::Node;
  SavedTensor x, weight, offsets;
  Shape x_shape, weight_shape;
  DType dtype = DType::bfloat16;
  bool turned = false;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor ends = offsets.unpack(ctx), matrices = weight.unpack(ctx), rows = x.unpack(ctx);
    Grads out(2);
    if (wants(1)) {
      out[1] = empty(ctx, weight_shape, dtype, Op::grouped_mm), out[1].impl()->is_view = !turned;
      const Tensor &left = turned ? rows : grads[0], &right = turned ? grads[0] : rows;
      if (auto* kernels = routing_kernels(ctx, out[1]))
        kernels->grouped_outer(ctx.stream, array_of(out[1]), array_of(left), array_of(right), array_of(ends));
    }
    if (wants(0)) {
      out[0] = empty(ctx, x_shape, dtype, Op::grouped_mm);
      if (auto* kernels = routing_kernels(ctx, out[0]))
        kernels->grouped_gemm(ctx.stream, array_of(out[0]), array_of(grads[0]),
                              array_of(turned ? matrices.transpose(1, 2) : matrices), array_of(ends));
    }
    for (const bool wanted : {wants(0), wants(1)})
      if (wanted) multiply(ctx, x_shape[0], grads[0].size(1), x_shape[1], dtype);
    if (wants(0)) touch_weight(ctx, matrices);
    return out;
  }
  void release() override { weight.release(), offsets.release(), x.release(); }
};

/// cuBLAS takes matrices whose rows or columns lie densely; any others are copied first.
void copy_for_cublas(Context& ctx, const Tensor& matrices) {
  const auto& steps = matrices.strides();
  if (steps[1] != 1 && steps[2] != 1) const Tensor copy = empty(ctx, matrices.shape(), matrices.dtype(), Op::clone);
}

/// out = alpha * a x b + beta * out
void multiply_stacks(Context& ctx, const Tensor& out, const Tensor& a, const Tensor& b, double alpha, double beta) {
  if (Kernels* kernels = ctx.kernels(out))
    kernels->gemm(ctx.stream, array_of(out), array_of(a), array_of(b), alpha, beta);
}

struct BaddbmmBackward final : Node {
  using Node::Node;
  SavedTensor left, right;
  double alpha = 1;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor b = right.unpack(ctx), a = left.unpack(ctx);
    Grads out(2);
    if (wants(0)) {
      out[0] = empty(ctx, a.shape(), grads[0].dtype(), Op::bmm);
      multiply_stacks(ctx, out[0], grads[0], b.transpose(1, 2), alpha, 0);
    }
    if (wants(1)) {
      out[1] = empty(ctx, b.shape(), grads[0].dtype(), Op::bmm);
      copy_for_cublas(ctx, a);
      multiply_stacks(ctx, out[1], a.transpose(1, 2), grads[0], alpha, 0);
    }
    return out;
  }
  void release() override { left.release(), right.release(); }
};

Tensor multiply_groups(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets, bool turned) {
  const auto node = record<GroupedMmBackward>(ctx, x, weight);
  if (node) {
    node->x_shape = x.shape(), node->weight_shape = weight.shape(), node->dtype = x.dtype(), node->turned = turned;
    if (node->wants(0)) node->weight.save(ctx, weight);
    if (node->wants(1)) node->x.save(ctx, x);
    node->offsets.save(ctx, offsets);
  }
  const std::int64_t width = weight.size(turned ? 2 : 1);
  Tensor out = empty(ctx, {x.size(0), width}, x.dtype(), Op::grouped_mm);
  multiply(ctx, x.size(0), width, x.size(1), x.dtype());
  if (auto* kernels = routing_kernels(ctx, out))
    kernels->grouped_gemm(ctx.stream, array_of(out), array_of(x), array_of(turned ? weight : weight.transpose(1, 2)),
                          array_of(offsets));
  touch_weight(ctx, weight);
  set_history(out, node);
  return out;
}

}  // namespace

Tensor grouped_mm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets) {
  return multiply_groups(ctx, x, weight, offsets, false);
}
Tensor grouped_mm_turned(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets) {
  return multiply_groups(ctx, x, weight, offsets, true);
}

Tensor add_products(Context& ctx, const Tensor& stack, const Tensor& left, const Tensor& right, double alpha) {
  const auto node = record<BaddbmmBackward>(ctx, left, right);
  if (node) {
    if (node->wants(1)) node->left.save(ctx, left);
    if (node->wants(0)) node->right.save(ctx, right);
    node->alpha = alpha;
  }
  Tensor out = empty(ctx, stack.shape(), stack.dtype(), Op::baddbmm);
  copy_for_cublas(ctx, left);
  copy_into(ctx, out, stack);
  multiply_stacks(ctx, out, left, right, alpha, 1);
  set_history(out, node);
  return out;
}

}  // namespace qlp

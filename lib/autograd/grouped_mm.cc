#include "autograd/grouped_mm.h"

#include "autograd/record.h"
#include "tensor/arithmetic.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// GroupedMmBackward0 and the transposition that runs right after it.
struct GroupedMmBackward final : Node {
  using Node::Node;
  SavedTensor x, weight, offsets;
  Shape x_shape, weight_shape;
  DType dtype = DType::bfloat16;
  Grads backward(Context& ctx, Grads&) override {
    const Tensor ends = offsets.unpack(ctx), matrices = weight.unpack(ctx), rows = x.unpack(ctx);
    Grads out(2);
    if (wants(1)) out[1] = empty(ctx, weight_shape, dtype, Op::grouped_mm), out[1].impl()->is_view = true;
    if (wants(0)) out[0] = empty(ctx, x_shape, dtype, Op::grouped_mm);
    for (const bool wanted : {wants(0), wants(1)})
      if (wanted) multiply(ctx, x_shape[0], weight_shape[1], x_shape[1], dtype);
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

struct BaddbmmBackward final : Node {
  using Node::Node;
  SavedTensor left, right;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor b = right.unpack(ctx), a = left.unpack(ctx);
    Grads out(2);
    if (wants(0)) out[0] = empty(ctx, a.shape(), grads[0].dtype(), Op::bmm);
    if (wants(1)) {
      out[1] = empty(ctx, b.shape(), grads[0].dtype(), Op::bmm);
      copy_for_cublas(ctx, a);
    }
    return out;
  }
  void release() override { left.release(), right.release(); }
};

}  // namespace

Tensor grouped_mm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets) {
  const auto node = record<GroupedMmBackward>(ctx, x, weight);
  if (node) {
    node->x_shape = x.shape(), node->weight_shape = weight.shape(), node->dtype = x.dtype();
    if (node->wants(0)) node->weight.save(ctx, weight);
    if (node->wants(1)) node->x.save(ctx, x);
    node->offsets.save(ctx, offsets);
  }
  Tensor out = empty(ctx, {x.size(0), weight.size(1)}, x.dtype(), Op::grouped_mm);
  multiply(ctx, x.size(0), weight.size(1), x.size(1), x.dtype());
  touch_weight(ctx, weight);
  set_history(out, node);
  return out;
}

Tensor add_products(Context& ctx, const Tensor& stack, const Tensor& left, const Tensor& right) {
  const auto node = record<BaddbmmBackward>(ctx, left, right);
  if (node) {
    if (node->wants(1)) node->left.save(ctx, left);
    if (node->wants(0)) node->right.save(ctx, right);
  }
  Tensor out = empty(ctx, stack.shape(), stack.dtype(), Op::baddbmm);
  copy_for_cublas(ctx, left);
  set_history(out, node);
  return out;
}

}  // namespace qlp

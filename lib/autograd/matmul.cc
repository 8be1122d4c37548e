#include "autograd/matmul.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "autograd/views.h"
#include "autograd/zero3_linear.h"
#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// MmBackward0 or AddmmBackward0 and the views that run right before and after it: operands weight, x, bias.
struct LinearBackward final : Node {
  using Node::Node;
  SavedTensor x, weight;
  std::int64_t out_features = 0;
  Shape x_shape;
  DType dtype = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    Tensor& grad = grads[0];
    const Tensor other = weight.unpack(ctx), self = x.unpack(ctx);
    // The view of the result: a gradient that does not lie row by row is copied first.
    const Shape flat{grad.numel() / out_features, out_features};
    if (grad.contiguous()) {
      grad = grad.view(flat);
    } else {
      const Tensor copy = empty(ctx, flat, grad.dtype(), Op::contiguous);
      copy_elements(ctx, copy, grad);
      grad = copy;
    }
    Grads out(3);
    if (wants(1) && addmm_) out[1] = gemm(ctx, {grad}, {other}, dtype);
    if (wants(0)) {
      out[0] = gemm(ctx, {.tensor = grad, .turned = true}, {self}, dtype);
      out[0].impl()->is_view = true;  // transposed twice
    }
    if (wants(1) && !addmm_) out[1] = gemm(ctx, {grad}, {other}, dtype);
    if (wants(0)) touch(ctx, out[0]);
    if (wants(1)) touch_weight(ctx, other);
    if (wants(1) && x_shape.rank() > 2) out[1] = out[1].view(x_shape);
    if (wants(2)) out[2] = grad;  // summed over the rows by the engine
    return out;
  }
  void release() override {  // by name: mm's are self and mat2, addmm's are mat1 and mat2
    if (addmm_)
      x.release(), weight.release();
    else
      weight.release(), x.release();
  }
  void set_addmm() { addmm_ = true; }

 private:
  bool addmm_ = false;
};

struct BmmBackward final : Node {
  using Node::Node;
  SavedTensor a, b;
  DType dtype = DType::float32;
  Op op = Op::bmm;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor right = b.unpack(ctx), left = a.unpack(ctx);
    const bool stacked = grads[0].shape().rank() == 3;
    const Operand grad{.tensor = grads[0], .stacked = stacked};
    Grads out(2);
    if (wants(1)) out[1] = gemm(ctx, {.tensor = left, .turned = true, .stacked = stacked}, grad, dtype, op);
    if (wants(0)) out[0] = gemm(ctx, grad, {.tensor = right, .turned = true, .stacked = stacked}, dtype, op);
    return out;
  }
  void release() override { b.release(), a.release(); }
};

/// addmm whose bias is added by cuBLASLt (CUDABlas.cpp, gemm_and_bias).
Tensor gemm_with_bias(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor out = empty(ctx, {x.size(0), weight.size(0)}, x.dtype(), Op::addmm);
  const Scoped category(ctx.category, Category::workspace);
  const std::uint64_t bytes = ctx.abandoned ? 0 : ctx.device.traits().cublaslt_workspace_bytes;
  const Storage workspace(ctx.device, bytes, ctx.stream, ctx.label(Op::cublas_workspace));
  copy_into(ctx, out, bias);
  gemm_into(ctx, out, {x}, {.tensor = weight, .turned = true}, 1);
  return out;
}

/// What each of several tensors has of their sum; autograd sees none of it
/// (torch/distributed/tensor/placement_types.py, Partial._partition_value, 2.14).
Tensor part_of_sum(Context& ctx, const Tensor& sum, std::int64_t summands) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor part = empty_like(ctx, sum, Op::div);
  compute(ctx, Unary::mul, part, sum, 1 / static_cast<double>(summands));
  return part;
}

/// The matrix or stack of matrices that a kernel multiplies.
Array matrix_of(const Operand& operand) {
  Array out = array_of(operand.tensor);
  if (!operand.stacked && out.shape.rank() != 2) {  // rows that lie behind each other
    const Shape shape{out.size(-1) ? out.numel() / out.size(-1) : 0, out.size(-1)};
    out.shape = shape, out.strides = contiguous_strides(shape);
  }
  if (!operand.turned) return out;
  const int rank = static_cast<int>(out.shape.rank());
  out.shape = out.shape.with(-1, out.size(-2)).with(-2, operand.tensor.size(-1));
  std::swap(out.strides[static_cast<std::size_t>(rank - 1)], out.strides[static_cast<std::size_t>(rank - 2)]);
  return out;
}

}  // namespace

void gemm_into(Context& ctx, const Tensor& out, const Operand& a, const Operand& b, double beta) {
  if (ctx.abandoned) return;
  ctx.device.use_cublas(ctx.thread, ctx.stream);
  const std::int64_t columns = out.size(-1);
  multiply(ctx, columns ? out.numel() / columns : 0, columns, a.columns(), out.dtype());
  if (Kernels* kernels = ctx.kernels(out))
    kernels->gemm(ctx.stream, array_of(out), matrix_of(a), matrix_of(b), 1, beta);
}

Tensor gemm(Context& ctx, const Operand& a, const Operand& b, DType dtype, Op op) {
  Tensor out =
      empty(ctx, a.stacked ? Shape{a.tensor.size(0), a.rows(), b.columns()} : Shape{a.rows(), b.columns()}, dtype, op);
  gemm_into(ctx, out, a, b);
  return out;
}

Tensor linear(Context& ctx, const Tensor& input, const Tensor& stored_weight, const Tensor& stored_bias,
              std::int64_t summands) {
  if (!ctx.saved_hooks.empty() && dynamic_cast<Zero3LinearFunction*>(ctx.saved_hooks.back()))
    return linear_for_zero3(ctx, input, stored_weight, stored_bias);
  // C++ evaluates the casts of the arguments from the last to the first.
  const Tensor bias = autocast_low(ctx, stored_bias);
  const Tensor weight = autocast_low(ctx, stored_weight);
  const Tensor cast = autocast_low(ctx, input);
  const Tensor dense = cast.contiguous() ? cast : contiguous(ctx, cast);
  const std::int64_t rows = dense.numel() / dense.size(-1);
  // addmm's operand is flattened before the weight is transposed, mm's after it: so the gradient of addmm's weight has
  // reached its leaf when that of x is unflattened, that of mm's has not (ATen/native/Linear.cpp).
  const Tensor x = bias.defined() ? reshape(ctx, dense, {rows, dense.size(-1)}) : dense;

  const auto node = record<LinearBackward>(ctx, weight, x, bias);
  if (node) {
    node->out_features = weight.size(0), node->x_shape = x.shape(), node->dtype = x.dtype();
    if (bias.defined()) node->set_addmm();
    if (node->wants(0)) node->x.save(ctx, x);
    if (node->wants(1)) node->weight.save(ctx, weight.alias());  // weight.t()
  }
  const Tensor added = summands > 1 ? part_of_sum(ctx, bias, summands) : bias;
  const Tensor flat = bias.defined() ? gemm_with_bias(ctx, x, weight, added)
                                     : gemm(ctx, {x}, {.tensor = weight, .turned = true}, x.dtype());
  touch_weight(ctx, stored_weight);
  Tensor out = flat.view(dense.shape().with(-1, weight.size(0)));
  out.impl()->is_view = false;
  set_history(out, node);
  return out;
}

namespace {

/// a x b over the last dimension of a and the last but one of b.
Tensor product(Context& ctx, const Tensor& a, const Tensor& b, Op op) {
  const auto node = record<BmmBackward>(ctx, a, b);
  if (node) {
    node->dtype = a.dtype(), node->op = op;
    if (node->wants(0)) node->b.save(ctx, b);
    if (node->wants(1)) node->a.save(ctx, a);
  }
  const bool stacked = a.shape().rank() == 3;
  Tensor out = gemm(ctx, {.tensor = a, .stacked = stacked}, {.tensor = b, .stacked = stacked}, a.dtype(), op);
  set_history(out, node);
  return out;
}

}  // namespace

Tensor mm(Context& ctx, const Tensor& a, const Tensor& b) { return product(ctx, a, b, Op::mm); }

Tensor batched_matmul(Context& ctx, const Tensor& left, const Tensor& right) {
  const Tensor b4 = autocast_low(ctx, right);
  const Tensor a4 = autocast_low(ctx, left);
  // Batch and heads become one dimension: a copy where they do not lie behind each other.
  const std::int64_t count = a4.size(0) * a4.size(1);
  const Tensor a = reshape(ctx, a4, {count, a4.size(2), a4.size(3)});
  const Tensor b = reshape(ctx, b4, {count, b4.size(2), b4.size(3)});
  return reshape(ctx, product(ctx, a, b, Op::bmm), a4.shape().with(-1, b4.size(-1)));
}

}  // namespace qlp

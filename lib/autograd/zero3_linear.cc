#include "autograd/zero3_linear.h"

#include <utility>

#include "autograd/matmul.h"
#include "autograd/record.h"
#include "autograd/views.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

class Kept final : public PackedTensor {
 public:
  explicit Kept(Tensor tensor) : tensor_(std::move(tensor)) {}
  Tensor unpack(Context&) override { return tensor_; }

 private:
  Tensor tensor_;
};

struct Zero3LinearBackward final : Node {
  using Node::Node;
  SavedTensor x, weight;
  Shape x_shape;
  DType dtype = DType::float32;

  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor& grad = grads[0];
    const Tensor self = x.unpack(ctx), other = weight.unpack(ctx);
    const std::int64_t in = x_shape[-1], features = grad.size(-1), rows = grad.numel() / features;
    Grads out(3);
    if (wants(1)) {
      const Tensor dense = contiguous(ctx, grad);
      out[1] = gemm(ctx, {rows, in}, features, dtype).view(x_shape);
      out[1].impl()->is_view = false;  // torch.matmul's _unsafe_view has no base
    }
    if (wants(0)) {
      const Tensor dense = contiguous(ctx, grad);
      out[0] = gemm(ctx, {features, in}, rows, dtype);
    }
    if (wants(2)) {
      out[2] = empty(ctx, {features}, grad.dtype(), Op::sum);
      reduction_scratch(ctx, grad, (1U << (grad.shape().rank() - 1)) - 1, Op::sum);
    }
    return out;
  }
  void release() override { x.release(), weight.release(); }
};

}  // namespace

Ref<PackedTensor> Zero3LinearFunction::pack(Context&, const Tensor& tensor) { return make_ref<Kept>(tensor); }

Tensor linear_for_zero3(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto node = record<Zero3LinearBackward>(ctx, weight, x, bias);
  if (node) {
    node->x_shape = x.shape(), node->dtype = x.dtype();
    node->x.save(ctx, x), node->weight.save(ctx, weight);
  }
  const Scoped no_grad(ctx.grad_enabled, false);
  const Tensor dense = contiguous(ctx, x);
  const Shape product{x.numel() / x.size(-1), weight.size(0)};
  Tensor out = gemm(ctx, product, x.size(-1), x.dtype()).view(x.shape().with(-1, weight.size(0)));
  out.impl()->is_view = false;
  set_history(out, node);
  return out;
}

}  // namespace qlp

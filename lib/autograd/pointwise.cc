#include "autograd/pointwise.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Gradients pass unchanged to every operand.
struct PassBackward final : Node {
  using Node::Node;
  Grads backward(Context&, Grads& grads) override {
    Grads out;
    for (const Edge& edge : edges()) out.push_back(edge.node ? grads[0] : Tensor());
    return out;
  }
};

struct MulBackward final : Node {
  using Node::Node;
  SavedTensor a, b;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor other = b.unpack(ctx), self = a.unpack(ctx);
    Grads out(2);
    if (wants(1)) out[1] = empty_for(ctx, grads[0], self, promote(grads[0], self), Op::mul);
    if (wants(0)) out[0] = empty_for(ctx, grads[0], other, promote(grads[0], other), Op::mul);
    return out;
  }
  void release() override { a.release(), b.release(); }
};

struct DivBackward final : Node {
  using Node::Node;
  SavedTensor a, b;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out(2);
    const Tensor divisor = b.unpack(ctx), self = a.unpack(ctx);
    if (wants(1)) {  // -grad * ((self / other) / other)
      const Tensor negative = empty_like(ctx, grads[0], Op::neg);
      const Tensor once = empty_for(ctx, self, divisor, promote(self, divisor), Op::div);
      const Tensor twice = empty_for(ctx, once, divisor, promote(once, divisor), Op::div);
      out[1] = empty_for(ctx, negative, twice, promote(negative, twice), Op::mul);
    }
    if (wants(0)) out[0] = empty_for(ctx, grads[0], divisor, promote(grads[0], divisor), Op::div);
    return out;
  }
  void release() override { a.release(), b.release(); }
};

/// One new tensor of the gradient's shape; keeps at most one tensor.
struct UnaryBackward final : Node {
  UnaryBackward(Context& ctx, Op op) : Node(ctx), op_(op) {}
  SavedTensor kept;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor unpacked = kept.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], op_));
    return out;
  }
  void release() override { kept.release(); }

 private:
  Op op_;
};

enum class Keep : std::uint8_t { nothing, operand, result };

Tensor unary(Context& ctx, const Tensor& a, Op op, Op backward_op, Keep keep) {
  Ref<UnaryBackward> node;
  if (records(ctx, a)) {
    node = make_ref<UnaryBackward>(ctx, backward_op);
    node->add_edge(a);
    if (keep == Keep::operand) node->kept.save(ctx, a);
  }
  Tensor out = empty_like(ctx, a, op);
  set_history(out, node);
  if (node && keep == Keep::result) node->kept.save_result(ctx, out);
  return out;
}

struct SquareBackward final : Node {
  using Node::Node;
  SavedTensor self;
  Grads backward(Context& ctx, Grads& grads) override {  // grad * (exponent * self.pow(exponent - 1))
    const Tensor x = self.unpack(ctx);
    const Tensor power = empty_like(ctx, x, Op::pow);
    const Tensor scaled = empty_like(ctx, power, Op::mul);
    Grads out;
    out.push_back(empty_for(ctx, grads[0], scaled, promote(grads[0], scaled), Op::mul));
    return out;
  }
  void release() override { self.release(); }
};

struct RsqrtBackward final : Node {
  using Node::Node;
  SavedTensor result;
  Grads backward(Context& ctx, Grads& grads) override {  // -0.5 * grad * result.pow(3)
    const Tensor root = result.unpack(ctx);
    const Tensor power = empty_like(ctx, root, Op::pow);
    const Tensor half = empty_like(ctx, grads[0], Op::mul);
    Grads out;
    out.push_back(empty_like(ctx, half, Op::mul));
    return out;
  }
  void release() override { result.release(); }
};

struct ToCopyBackward final : Node {
  using Node::Node;
  DType source = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(grads[0].dtype() == source ? grads[0] : empty_like(ctx, grads[0], source, Op::to_copy));
    return out;
  }
};

}  // namespace

Tensor add(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<PassBackward>(ctx, a, b);
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::add);
  set_history(out, node);
  return out;
}

Tensor add_scalar(Context& ctx, const Tensor& a) {
  const auto node = record<PassBackward>(ctx, a);
  Tensor out = empty_like(ctx, a, Op::add);
  set_history(out, node);
  return out;
}

Tensor mul(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<MulBackward>(ctx, a, b);
  if (node && node->wants(0)) node->b.save(ctx, b);
  if (node && node->wants(1)) node->a.save(ctx, a);
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::mul);
  set_history(out, node);
  return out;
}

Tensor div(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<DivBackward>(ctx, a, b);
  if (node) node->b.save(ctx, b);
  if (node && node->wants(1)) node->a.save(ctx, a);
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::div);
  set_history(out, node);
  return out;
}

Tensor scale(Context& ctx, const Tensor& a, Op op) { return unary(ctx, a, op, op, Keep::nothing); }
Tensor scale_in_place(Context& ctx, const Tensor& a) {
  Ref<UnaryBackward> node;
  if (records(ctx, a)) {
    node = make_ref<UnaryBackward>(ctx, Op::mul);
    node->add_edge(a);
  }
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}
Tensor neg(Context& ctx, const Tensor& a) { return unary(ctx, a, Op::neg, Op::neg, Keep::nothing); }
Tensor tanh(Context& ctx, const Tensor& a) { return unary(ctx, a, Op::tanh, Op::tanh_backward, Keep::result); }
Tensor silu(Context& ctx, const Tensor& a) { return unary(ctx, a, Op::silu, Op::silu_backward, Keep::operand); }
Tensor gelu(Context& ctx, const Tensor& a) { return unary(ctx, a, Op::gelu, Op::gelu_backward, Keep::operand); }
Tensor clone(Context& ctx, const Tensor& a) {
  const auto node = record<PassBackward>(ctx, a);
  Tensor out = empty_like(ctx, a, Op::clone);
  set_history(out, node);
  return out;
}

Tensor square(Context& ctx, const Tensor& a) {
  const Tensor x = autocast_fp32(ctx, a);
  const auto node = record<SquareBackward>(ctx, x);
  if (node) node->self.save(ctx, x);
  Tensor out = empty_like(ctx, x, Op::pow);
  set_history(out, node);
  return out;
}

Tensor rsqrt(Context& ctx, const Tensor& a) {
  const Tensor x = autocast_fp32(ctx, a);
  const auto node = record<RsqrtBackward>(ctx, x);
  Tensor out = empty_like(ctx, x, Op::rsqrt);
  set_history(out, node);
  if (node) node->result.save_result(ctx, out);
  return out;
}

Tensor dropout(Context& ctx, const Tensor& a) {
  Ref<UnaryBackward> node;
  if (records(ctx, a)) {
    node = make_ref<UnaryBackward>(ctx, Op::masked_scale);
    node->add_edge(a);
  }
  const Tensor mask = empty_like(ctx, a, DType::boolean, Op::native_dropout);
  Tensor out = empty_like(ctx, a, Op::native_dropout);
  set_history(out, node);
  if (node) node->kept.save_result(ctx, mask);
  return out;
}

Tensor to(Context& ctx, const Tensor& a, DType dtype) {
  if (a.dtype() == dtype) return a;
  const auto node = record<ToCopyBackward>(ctx, a);
  if (node) node->source = a.dtype();
  Tensor out = empty_like(ctx, a, dtype, Op::to_copy);
  set_history(out, node);
  return out;
}

}  // namespace qlp

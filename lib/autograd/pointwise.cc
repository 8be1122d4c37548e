#include "autograd/pointwise.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Gradients pass unchanged to every operand.
Tensor product(Context& ctx, const Tensor& a, const Tensor& b) {
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::mul);
  compute(ctx, Binary::mul, out, a, b);
  return out;
}
Tensor quotient(Context& ctx, const Tensor& a, const Tensor& b) {
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::div);
  compute(ctx, Binary::div, out, a, b);
  return out;
}
/// A new tensor like `a`, with op(a).
Tensor mapped(Context& ctx, const Tensor& a, Op name, Unary op, double p = 0) {
  Tensor out = empty_like(ctx, a, name);
  compute(ctx, op, out, a, p);
  return out;
}

struct SubBackward final : Node {
  using Node::Node;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out(2);
    if (wants(0)) out[0] = grads[0];
    if (wants(1)) out[1] = mapped(ctx, grads[0], Op::neg, Unary::neg);
    return out;
  }
};

struct MulBackward final : Node {
  using Node::Node;
  SavedTensor a, b;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor other = b.unpack(ctx), self = a.unpack(ctx);
    Grads out(2);
    if (wants(1)) out[1] = product(ctx, grads[0], self);
    if (wants(0)) out[0] = product(ctx, grads[0], other);
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
      const Tensor negative = mapped(ctx, grads[0], Op::neg, Unary::neg);
      const Tensor once = quotient(ctx, self, divisor);
      const Tensor twice = quotient(ctx, once, divisor);
      out[1] = product(ctx, negative, twice);
    }
    if (wants(0)) out[0] = quotient(ctx, grads[0], divisor);
    return out;
  }
  void release() override { a.release(), b.release(); }
};

/// The gradient times a number: a new tensor of its shape.
struct ScaleBackward final : Node {
  using Node::Node;
  Op op = Op::mul;
  double factor = 1;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(mapped(ctx, grads[0], op, Unary::mul, factor));
    return out;
  }
};

Ref<ScaleBackward> record_scale(Context& ctx, const Tensor& a, Op op, double factor) {
  auto node = record<ScaleBackward>(ctx, a);
  if (node) node->op = op, node->factor = factor;
  return node;
}

/// An operation whose gradient is worked out from that of the result and from one tensor that is kept.
struct Function {
  Op op, backward_op;
  Unary forward;
  Binary backward;
  bool keeps_result = false;  ///< else the operand
};
constexpr Function kTanh{Op::tanh, Op::tanh_backward, Unary::tanh, Binary::tanh_backward, true};
constexpr Function kSigmoid{Op::sigmoid, Op::sigmoid_backward, Unary::sigmoid, Binary::sigmoid_backward, true};
constexpr Function kSilu{Op::silu, Op::silu_backward, Unary::silu, Binary::silu_backward};
constexpr Function kGelu{Op::gelu, Op::gelu_backward, Unary::gelu_tanh, Binary::gelu_tanh_backward};

struct FunctionBackward final : Node {
  using Node::Node;
  SavedTensor kept;
  const Function* function = nullptr;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor unpacked = kept.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], function->backward_op));
    compute(ctx, function->backward, out[0], grads[0], unpacked);
    return out;
  }
  void release() override { kept.release(); }
};

Tensor apply(Context& ctx, const Tensor& a, const Function& function) {
  const auto node = record<FunctionBackward>(ctx, a);
  if (node) node->function = &function;
  if (node && !function.keeps_result) node->kept.save(ctx, a);
  Tensor out = mapped(ctx, a, function.op, function.forward);
  set_history(out, node);
  if (node && function.keeps_result) node->kept.save_result(ctx, out);
  return out;
}

/// where(self >= min and self <= max, grad, 0) with the comparisons as masks (FunctionsManual.cpp, clamp_backward).
struct ClampBackward final : Node {
  using Node::Node;
  SavedTensor self;
  double limit = 0;
  bool both_sides = false;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor x = self.unpack(ctx);
    const Tensor zero = empty(ctx, {}, grads[0].dtype(), Op::zeros);
    const Tensor mask = empty_like(ctx, x, DType::boolean, Op::ge);
    Tensor other;
    if (both_sides) other = empty_like(ctx, x, DType::boolean, Op::ge);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], Op::where));
    compute(ctx, both_sides ? Binary::pass_within : Binary::pass_at_most, out[0], grads[0], x, limit);
    return out;
  }
  void release() override { self.release(); }
};

Tensor clamp(Context& ctx, const Tensor& a, double limit, bool both_sides) {
  const auto node = record<ClampBackward>(ctx, a);
  if (node) node->limit = limit, node->both_sides = both_sides, node->self.save(ctx, a);
  Tensor out = mapped(ctx, a, Op::clamp, Unary::at_most, limit);
  if (both_sides) compute(ctx, Unary::at_least, out, out, -limit);
  set_history(out, node);
  return out;
}

struct DropoutBackward final : Node {
  using Node::Node;
  SavedTensor mask;
  double factor = 1;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor kept = mask.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], Op::masked_scale));
    compute(ctx, Binary::mul, out[0], grads[0], kept, factor);
    return out;
  }
  void release() override { mask.release(); }
};

struct SquareBackward final : Node {
  using Node::Node;
  SavedTensor self;
  Grads backward(Context& ctx, Grads& grads) override {  // grad * (exponent * self.pow(exponent - 1))
    const Tensor x = self.unpack(ctx);
    const Tensor power = mapped(ctx, x, Op::pow, Unary::copy);
    const Tensor scaled = mapped(ctx, power, Op::mul, Unary::mul, 2);
    Grads out;
    out.push_back(product(ctx, grads[0], scaled));
    return out;
  }
  void release() override { self.release(); }
};

struct RsqrtBackward final : Node {
  using Node::Node;
  SavedTensor result;
  Grads backward(Context& ctx, Grads& grads) override {  // -0.5 * grad * result.pow(3)
    const Tensor root = result.unpack(ctx);
    const Tensor power = mapped(ctx, root, Op::pow, Unary::cube);
    const Tensor half = mapped(ctx, grads[0], Op::mul, Unary::mul, -0.5);
    Grads out;
    out.push_back(empty_like(ctx, half, Op::mul));
    compute(ctx, Binary::mul, out[0], half, power);
    return out;
  }
  void release() override { result.release(); }
};

struct ToCopyBackward final : Node {
  using Node::Node;
  DType source = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    if (grads[0].dtype() == source) {
      out.push_back(grads[0]);
      return out;
    }
    out.push_back(empty_like(ctx, grads[0], source, Op::to_copy));
    copy_into(ctx, out[0], grads[0]);
    return out;
  }
};

}  // namespace

Tensor add(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<PassBackward>(ctx, a, b);
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::add);
  compute(ctx, Binary::add, out, a, b);
  set_history(out, node);
  return out;
}

Tensor add_in_place(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<PassBackward>(ctx, a, b);
  compute(ctx, Binary::add, a, a, b);
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}

Tensor sub(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<SubBackward>(ctx, a, b);
  Tensor out = empty_for(ctx, a, b, promote(a, b), Op::sub);
  compute(ctx, Binary::add, out, a, b, -1);
  set_history(out, node);
  return out;
}

Tensor add_scalar(Context& ctx, const Tensor& a, double addend) {
  const auto node = record<PassBackward>(ctx, a);
  Tensor out = mapped(ctx, a, Op::add, Unary::add, addend);
  set_history(out, node);
  return out;
}

Tensor mul(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<MulBackward>(ctx, a, b);
  if (node && node->wants(0)) node->b.save(ctx, b);
  if (node && node->wants(1)) node->a.save(ctx, a);
  Tensor out = product(ctx, a, b);
  set_history(out, node);
  return out;
}

Tensor div(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<DivBackward>(ctx, a, b);
  if (node) node->b.save(ctx, b);
  if (node && node->wants(1)) node->a.save(ctx, a);
  Tensor out = quotient(ctx, a, b);
  set_history(out, node);
  return out;
}

Tensor scale(Context& ctx, const Tensor& a, double factor, Op op) {
  const auto node = record_scale(ctx, a, op, factor);
  Tensor out = mapped(ctx, a, op, Unary::mul, factor);
  set_history(out, node);
  return out;
}
Tensor scale_in_place(Context& ctx, const Tensor& a, double factor) {
  const auto node = record_scale(ctx, a, Op::mul, factor);
  compute(ctx, Unary::mul, a, a, factor);
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}
Tensor neg(Context& ctx, const Tensor& a) {
  const auto node = record_scale(ctx, a, Op::neg, -1);
  Tensor out = mapped(ctx, a, Op::neg, Unary::neg);
  set_history(out, node);
  return out;
}
Tensor tanh(Context& ctx, const Tensor& a) { return apply(ctx, a, kTanh); }
Tensor sigmoid(Context& ctx, const Tensor& a) { return apply(ctx, a, kSigmoid); }
Tensor silu(Context& ctx, const Tensor& a) { return apply(ctx, a, kSilu); }
Tensor gelu(Context& ctx, const Tensor& a) { return apply(ctx, a, kGelu); }
Tensor clamp_at_most(Context& ctx, const Tensor& a, double limit) { return clamp(ctx, a, limit, false); }
Tensor clamp_within(Context& ctx, const Tensor& a, double limit) { return clamp(ctx, a, limit, true); }
Tensor clone(Context& ctx, const Tensor& a) {
  const auto node = record<PassBackward>(ctx, a);
  Tensor out = mapped(ctx, a, Op::clone, Unary::copy);
  set_history(out, node);
  return out;
}

Tensor square(Context& ctx, const Tensor& a) {
  const Tensor x = autocast_fp32(ctx, a);
  const auto node = record<SquareBackward>(ctx, x);
  if (node) node->self.save(ctx, x);
  Tensor out = mapped(ctx, x, Op::pow, Unary::square);
  set_history(out, node);
  return out;
}

Tensor rsqrt(Context& ctx, const Tensor& a) {
  const Tensor x = autocast_fp32(ctx, a);
  const auto node = record<RsqrtBackward>(ctx, x);
  Tensor out = mapped(ctx, x, Op::rsqrt, Unary::rsqrt);
  set_history(out, node);
  if (node) node->result.save_result(ctx, out);
  return out;
}

Tensor dropout(Context& ctx, const Tensor& a, double p) {
  const auto node = record<DropoutBackward>(ctx, a);
  const Tensor mask = empty_like(ctx, a, DType::boolean, Op::native_dropout);
  Tensor out = empty_like(ctx, a, Op::native_dropout);
  const double factor = 1 / (1 - p);
  if (Kernels* kernels = ctx.kernels(out)) {
    const Draw draw = next_draw(ctx, out);
    kernels->bernoulli(ctx.stream, array_of(mask), draw.key, draw.first, 1 - p);
    compute(ctx, Binary::mul, out, a, mask, factor);
  }
  set_history(out, node);
  if (node) node->factor = factor, node->mask.save_result(ctx, mask);
  return out;
}

Tensor to(Context& ctx, const Tensor& a, DType dtype) {
  if (a.dtype() == dtype) return a;
  const auto node = record<ToCopyBackward>(ctx, a);
  if (node) node->source = a.dtype();
  Tensor out = empty_like(ctx, a, dtype, Op::to_copy);
  copy_into(ctx, out, a);
  set_history(out, node);
  return out;
}

}  // namespace qlp

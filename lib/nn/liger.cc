#include "nn/liger.h"

#include <utility>

#include "autograd/record.h"
#include "autograd/views.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

Tensor dense(Context& ctx, const Tensor& x) {
  if (x.contiguous()) return x;
  Tensor copy = empty(ctx, x.shape(), x.dtype(), Op::contiguous);
  copy_into(ctx, copy, x);
  return copy;
}

struct NormBackward final : Node {
  using Node::Node;
  SavedTensor x, weight, rstd;
  LigerNorm options;
  NormNumbers numbers;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor input = x.unpack(ctx), gain = weight.unpack(ctx), root = rstd.unpack(ctx);
    const Tensor grad = dense(ctx, grads[0]);
    Tensor partial;  // one row for each multiprocessor
    if (wants(1) || !options.skips_frozen_gain)
      partial = empty(ctx, {ctx.device.traits().sm_count, input.size(-1)}, DType::float32, Op::empty);
    Grads out(2);
    out[0] = (options.in_place ? grad : empty_like(ctx, grad, Op::zeros)).view(grad.shape());
    if (partial.defined()) {
      out[1] = empty(ctx, gain.shape(), DType::float32, Op::sum);
      reduction_scratch(ctx, partial, 1U, Op::sum);
    }
    if (Kernels* kernels = ctx.kernels(grad))
      kernels->rms_norm_backward(ctx.stream, array_of(out[0]), array_of(out[1]), array_of(grad), array_of(input),
                                 array_of(gain), array_of(root), numbers.offset);
    if (partial.defined() && gain.dtype() != DType::float32) {
      const Tensor cast = empty_like(ctx, out[1], gain.dtype(), Op::to_copy);
      copy_into(ctx, cast, out[1]);
      out[1] = cast;
    }
    return out;
  }
  void release() override { x.release(), weight.release(), rstd.release(); }
};

/// Turns heads [B, heads, S, D] where they lie.
void rotate(Context& ctx, const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  if (Kernels* kernels = ctx.kernels(x))
    kernels->rotate_in_place(ctx.stream, array_of(x), array_of(cos), array_of(sin), inverse);
}

struct RopeBackward final : Node {
  using Node::Node;
  SavedTensor cos, sin;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor c = cos.unpack(ctx), s = sin.unpack(ctx);
    Grads out(2);
    for (std::size_t i = 0; i < 2; ++i)
      if (grads[i].defined()) {
        out[i] = dense(ctx, grads[i].transpose(1, 2)).transpose(1, 2);
        rotate(ctx, out[i], c, s, true);
      }
    return out;
  }
  void release() override { cos.release(), sin.release(); }
};

struct GatedBackward final : Node {
  using Node::Node;
  SavedTensor gate, up;
  Activation activation = Activation::silu;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor grad = dense(ctx, grads[0]);
    Grads out(2);
    out[0] = gate.unpack(ctx).alias(), out[1] = up.unpack(ctx).alias();
    if (Kernels* kernels = ctx.kernels(grad))
      kernels->gated_product_backward(ctx.stream, array_of(out[0]), array_of(out[1]), array_of(grad),
                                      activation == Activation::gelu);
    return out;
  }
  void release() override { gate.release(), up.release(); }
};

}  // namespace

Tensor liger_rms_norm(Context& ctx, const Tensor& input, const Tensor& weight, const LigerNorm& options,
                      const NormNumbers& numbers) {
  const auto node = record<NormBackward>(ctx, input, weight);
  const Tensor x = dense(ctx, input);
  Tensor out = empty(ctx, x.shape(), x.dtype(), Op::rms_norm);
  const Tensor rstd = empty(ctx, {x.numel() / x.size(-1)}, DType::float32, Op::rms_norm);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->rms_norm(ctx.stream, array_of(out), array_of(rstd), array_of(x), array_of(weight), numbers.eps,
                      numbers.offset);
  if (node) {
    node->options = options, node->numbers = numbers;
    node->x.save(ctx, x), node->weight.save(ctx, weight), node->rstd.save(ctx, rstd);
  }
  set_history(out, node);
  return out;
}

Rotated liger_rope(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables) {
  const auto node = record<RopeBackward>(ctx, q, k);
  Rotated out{dense(ctx, q.transpose(1, 2)).transpose(1, 2), dense(ctx, k.transpose(1, 2)).transpose(1, 2)};
  rotate(ctx, out.q, tables.cos, tables.sin, false), rotate(ctx, out.k, tables.cos, tables.sin, false);
  if (node) node->cos.save(ctx, tables.cos), node->sin.save(ctx, tables.sin);
  set_history(out.q, node), set_history(out.k, node);
  return out;
}

Tensor liger_gated_product(Context& ctx, const Tensor& gate, const Tensor& up, Activation activation) {
  const auto node = record<GatedBackward>(ctx, gate, up);
  const Tensor a = dense(ctx, gate), b = dense(ctx, up);
  Tensor out = empty(ctx, a.shape(), a.dtype(), Op::mul);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->gated_product(ctx.stream, array_of(out), array_of(a), array_of(b), activation == Activation::gelu);
  if (node) node->activation = activation, node->gate.save(ctx, a), node->up.save(ctx, b);
  set_history(out, node);
  return out;
}

}  // namespace qlp

#include "autograd/interleave.h"

#include "autograd/record.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Every other element of the last dimension, from `first` on.
Tensor alternate(const Tensor& a, std::int64_t first) {
  Strides strides = a.strides();
  const auto last = a.shape().rank() - 1;
  const std::int64_t step = strides[last];
  strides[last] = 2 * step;
  return a.strided(a.shape().with(-1, a.size(-1) / 2), strides, first * step);
}

struct EveryOtherBackward final : Node {
  using Node::Node;
  Shape source;
  std::int64_t first = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(empty(ctx, source, grads[0].dtype(), Op::slice_backward));
    if (ctx.kernels(out[0])) {
      fill(ctx, out[0], 0);
      copy_into(ctx, alternate(out[0], first), grads[0]);
    }
    return out;
  }
};

/// unbind: views of the gradient.
struct InterleaveBackward final : Node {
  using Node::Node;
  Grads backward(Context&, Grads& grads) override {
    Grads out(2);
    if (wants(0)) out[0] = alternate(grads[0], 0);
    if (wants(1)) out[1] = alternate(grads[0], 1);
    return out;
  }
};

}  // namespace

Tensor every_other(Context& ctx, const Tensor& a, std::int64_t first) {
  const auto node = record<EveryOtherBackward>(ctx, a);
  if (node) node->source = a.shape(), node->first = first;
  Tensor out = alternate(a, first);
  set_history(out, node);
  return out;
}

Tensor interleave(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<InterleaveBackward>(ctx, a, b);
  Tensor out = empty(ctx, a.shape().with(-1, 2 * a.size(-1)), a.dtype(), Op::cat);
  copy_into(ctx, alternate(out, 0), a);
  copy_into(ctx, alternate(out, 1), b);
  set_history(out, node);
  return out;
}

}  // namespace qlp

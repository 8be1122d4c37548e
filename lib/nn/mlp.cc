#include "nn/mlp.h"

#include <utility>
#include <vector>

#include "autograd/pointwise.h"
#include "autograd/views.h"

namespace qlp {

GatedMlp::GatedMlp(std::string name, Activation activation, MlpProjections projections, bool liger)
    : FeedForward(ModuleKind::mlp, std::move(name)),
      activation_(activation),
      projections_(std::move(projections)),
      liger_(liger) {
  LinearModule *second = projections_.up.get(), *last = projections_.down.get();
  if (projections_.down_before_up) std::swap(second, last);
  for (LinearModule* linear : {projections_.gate_up.get(), projections_.gate.get(), second, last})
    if (linear) add_child(*linear);
}

Tensor GatedMlp::activate(Context& ctx, const Tensor& x) {
  // act_fn has no object here: its result is told to hooks that stand on every module.
  return further_input(ctx, activation_ == Activation::silu ? silu(ctx, x) : gelu(ctx, x));
}

Tensor GatedMlp::forward(Context& ctx, const Tensor& x, Tensor& /*routed*/) { return forward(ctx, x); }

Tensor GatedMlp::forward(Context& ctx, const Tensor& input) {
  return call(ctx, input, [&](const Tensor& x) {
    MlpProjections& p = projections_;
    if (p.gate_up) {
      const Tensor up_states = p.gate_up->forward(ctx, x);
      const std::int64_t half = up_states.size(-1) / 2;
      const auto halves = split(ctx, up_states, {half, half}, -1);
      if (liger_) {
        const Tensor product = liger_gated_product(ctx, halves[0], halves[1], activation_);
        return p.down->forward(ctx, product);
      }
      Tensor up = activate(ctx, halves[0]);
      up = mul(ctx, halves[1], up);
      return p.down->forward(ctx, up);
    }
    Tensor gate = p.gate->forward(ctx, x);
    Tensor product;
    if (liger_) {
      Tensor up = p.up->forward(ctx, x);
      product = liger_gated_product(ctx, gate, up, activation_);
      gate.reset(), up.reset();
      return p.down->forward(ctx, product);
    }
    gate = activate(ctx, gate);
    {
      const Tensor up = p.up->forward(ctx, x);
      product = mul(ctx, gate, up);
    }
    gate.reset();
    return p.down->forward(ctx, product);
  });
}

}  // namespace qlp

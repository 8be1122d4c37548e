// lomo_optim 0.1.1, lomo.py and adalomo.py, without clipping and weight decay, as the Trainer sets them up.
#include <algorithm>
#include <cmath>

#include "optim/factored_moment.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

Tensor widened(Context& ctx, const Tensor& tensor) {
  if (tensor.dtype() == DType::float32) return tensor;
  Tensor wide = empty_like(ctx, tensor, DType::float32, Op::to_copy);
  copy_into(ctx, wide, tensor);
  return wide;
}

/// AdaLOMO's sums are attributes of its own, which no state_dict() has.
struct LomoState {
  FactoredMoment moment;
  std::vector<Tensor> tensors() const { return {}; }
};

/// Parameters are updated within the backward pass: before one gets its gradient, those that have theirs by then are
/// updated and lose it.
class LomoOptimizer final : public StatefulOptimizer<LomoState> {
 public:
  LomoOptimizer(Context& ctx, const Lomo& kind, std::vector<ParameterGroup> groups, const std::vector<Shape>& frozen)
      : StatefulOptimizer(std::move(groups)), adaptive_(kind.adaptive) {
    for (const Shape& shape : frozen)
      if (adaptive_) make_moment(ctx, shape, idle_.emplace_back());
    each([&](const Tensor& parameter, LomoState& state) {
      if (adaptive_) make_moment(ctx, parameter.shape(), state.moment);
      register_hook(parameter, [this](Context& c, Grads&) { update_all(c); });
    });
  }

  /// The last one has nobody behind it whose hook would see it.
  void finish_backward(Context& ctx) override {
    update_all(ctx);
    ++steps_;
  }

 private:
  /// What the names of the function hold until the next parameter.
  struct Names {
    Tensor grad, update, parameter, rms, lr;
  };

  void step_group(Context&, const std::vector<Entry>&) override {}

  /// torch.zeros(...).cuda(), which waits for the GPU.
  static void make_moment(Context& ctx, const Shape& shape, FactoredMoment& moment) {
    const auto zeros = [&](std::int64_t count) {
      Tensor sums = state_of(ctx, {count}, DType::float32);
      ctx.device.synchronize();
      return sums;
    };
    if (shape.rank() == 1) {
      moment.all = zeros(shape[0]);
    } else {
      moment.row = zeros(shape[0]);
      moment.column = zeros(shape[1]);
    }
  }

  void update_all(Context& ctx) {
    const Scoped category(ctx.category, Category::workspace);
    const Scoped grad_mode(ctx.grad_enabled, false);
    Names names;
    each([&](const Tensor& parameter, LomoState& state) {
      if (grad_of(parameter).defined()) update(ctx, parameter, state.moment, names);
    });
  }

  void update(Context& ctx, const Tensor& parameter, const FactoredMoment& moment, Names& names) const {
    names.grad = widened(ctx, grad_of(parameter));
    set_grad(parameter, {});
    if (adaptive_) scale_by_moment(ctx, moment, names.grad, decay(), names.update);
    names.parameter = widened(ctx, parameter);
    const double step = adaptive_ ? lr() * parameter_scale(ctx, names) : lr();
    compute(ctx, Binary::add, names.parameter, names.parameter, adaptive_ ? names.update : names.grad, -step);
    if (names.parameter.dtype() != parameter.dtype()) copy_into(ctx, parameter, names.parameter);
  }

  double decay() const {
    constexpr double kDecayRate = -0.8;
    return steps_ == 0 ? 0 : 1 - std::pow(static_cast<double>(steps_ + 1), kDecayRate);
  }

  /// The size of the parameter, by which its step grows; Python compares it and multiplies with it.
  static double parameter_scale(Context& ctx, Names& names) {
    constexpr double kLeast = 1e-3;
    names.rms = root_mean_square(ctx, names.parameter);
    scratch(ctx, 1, Op::ne);
    names.lr = empty(ctx, {}, DType::float32, Op::mul);
    ctx.device.synchronize();
    return std::max(kLeast, item(ctx, names.rms));
  }

  bool adaptive_;
  std::vector<FactoredMoment> idle_;  ///< of what is frozen
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_lomo(Context& ctx, const Lomo& kind, std::vector<ParameterGroup> groups,
                                     const std::vector<Shape>& frozen) {
  return std::make_unique<LomoOptimizer>(ctx, kind, std::move(groups), frozen);
}

}  // namespace qlp

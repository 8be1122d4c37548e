// apollo_torch 1.0, apollo.py and random_projector.py.
#include <cstddef>
#include <functional>

#include "autograd/matmul.h"
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct ApolloState {
  bool projected = false;
  std::int64_t steps = 0;
  Tensor projector, exp_avg, exp_avg_sq, norm;
  std::vector<Tensor> tensors() const { return {projector, exp_avg, exp_avg_sq, norm}; }
};

/// The names of the step function, which hold on to what they were given for the last parameter.
struct Locals {
  Tensor grad, denom, norm_grad, factor, scaled_grad, scaled_norm, limiter;
};

class ApolloOptimizer final : public StatefulOptimizer<ApolloState> {
 public:
  /// The second group has what is projected.
  ApolloOptimizer(const Apollo& kind, std::vector<ParameterGroup> groups)
      : StatefulOptimizer(std::move(groups)), kind_(kind) {
    std::size_t plain = this->groups().front().size();
    each([&](const Tensor&, ApolloState& state) {
      if (plain > 0)
        --plain;
      else
        state.projected = true;
    });
  }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) update(ctx, *parameter, *state);
  }
  void end_step() override { names_ = {}; }

  void update(Context& ctx, const Tensor& parameter, ApolloState& state) {
    names_.grad = grad_of(parameter);
    if (state.projected) project(ctx, state);
    if (!state.exp_avg.defined()) {
      state.exp_avg = state_like(ctx, names_.grad);
      state.exp_avg_sq = state_like(ctx, names_.grad);
    }
    ++state.steps;
    names_.denom = empty_like(ctx, state.exp_avg_sq, Op::foreach_sqrt);
    names_.norm_grad = empty_like(ctx, names_.denom, Op::div);
    if (state.projected) scale_gradient(ctx, grad_of(parameter), state);
  }

  /// True if a matrix of these dimensions is multiplied from the right.
  bool from_right(const Tensor& grad) const {
    using Side = Apollo::Side;
    const bool tall = grad.size(0) >= grad.size(1);
    return kind_.proj_type == Side::right || (kind_.proj_type == Side::std && tall) ||
           (kind_.proj_type == Side::reverse_std && !tall);
  }

  void project(Context& ctx, ApolloState& state) {
    const Tensor full = names_.grad;
    const bool right = from_right(full);
    if (state.steps % kind_.update_proj_gap == 0) state.projector = random_matrix(ctx, full, right);
    const Operand matrix{.tensor = state.projector, .turned = true};
    names_.grad = right ? gemm(ctx, {full}, matrix, full.dtype()) : gemm(ctx, matrix, {full}, full.dtype());
  }

  /// stable_randn(...) / sqrt(rank) beside a float32 copy of the gradient, then cast to its dtype.
  Tensor random_matrix(Context& ctx, const Tensor& grad, bool right) const {
    const bool wide = grad.dtype() == DType::float32;
    const Tensor matrix = wide ? grad : empty_like(ctx, grad, DType::float32, Op::to_copy);
    const Shape shape = right ? Shape{kind_.rank, grad.size(1)} : Shape{grad.size(0), kind_.rank};
    const Scoped category(ctx.category, wide ? Category::optimizer_state : ctx.category);
    Tensor projection;
    {
      const Tensor random = empty(ctx, shape, DType::float32, Op::empty);
      projection = empty(ctx, shape, DType::float32, wide ? Op::optimizer_state : Op::div);
    }
    if (wide) return projection;
    const Scoped kept(ctx.category, Category::optimizer_state);
    return empty(ctx, shape, grad.dtype(), Op::optimizer_state);
  }

  /// The raw gradient times the quotient of two norms, by channels or as a whole, and not much larger than it was.
  void scale_gradient(Context& ctx, const Tensor& full, ApolloState& state) {
    const int dim = full.size(0) < full.size(1) ? 0 : 1;
    const auto norm = [&](const Tensor& x) {
      if (kind_.scale_type == Apollo::Scale::tensor) return whole_norm(ctx, x);
      Tensor out = empty(ctx, {x.size(1 - dim)}, x.dtype(), Op::linear_norm);
      reduction_scratch(ctx, x, 1U << static_cast<unsigned>(dim), Op::linear_norm);
      return out;
    };
    {
      const Tensor of_update = norm(names_.norm_grad);
      const Tensor divisor = raised(ctx, [&] { return norm(names_.grad); });
      names_.factor = empty_like(ctx, of_update, Op::div);
    }
    names_.scaled_grad = empty_like(ctx, full, Op::mul);
    if (state.norm.defined()) {
      names_.scaled_norm = whole_norm(ctx, names_.scaled_grad);
      {
        Tensor growth;
        {
          const Tensor divisor = empty_like(ctx, state.norm, Op::add);
          growth = empty_like(ctx, names_.scaled_norm, Op::div);
        }
        scratch(ctx, 1, Op::ne);  // max() of Python compares
        names_.limiter = empty_like(ctx, growth, Op::div);
      }
      names_.scaled_grad = empty_like(ctx, names_.scaled_grad, Op::div);
      const Scoped kept(ctx.category, Category::optimizer_state);
      state.norm = empty_like(ctx, names_.scaled_norm, Op::optimizer_state);
    } else {
      const Scoped kept(ctx.category, Category::optimizer_state);
      state.norm = whole_norm(ctx, names_.scaled_grad);
    }
    names_.norm_grad = names_.scaled_grad;
  }

  static Tensor whole_norm(Context& ctx, const Tensor& x) {
    Tensor out = empty(ctx, {}, x.dtype(), Op::linear_norm);
    full_reduction_scratch(ctx, x.numel(), Op::linear_norm);
    return out;
  }
  /// norm + 1e-8
  static Tensor raised(Context& ctx, const std::function<Tensor()>& norm) {
    const Tensor plain = norm();
    return empty_like(ctx, plain, Op::add);
  }

  Apollo kind_;
  Locals names_;
};

}  // namespace

std::unique_ptr<Optimizer> make_apollo(const Apollo& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<ApolloOptimizer>(kind, std::move(groups));
}

}  // namespace qlp

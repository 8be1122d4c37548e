// apollo_torch 1.0, apollo.py, random_projector.py and svd_projector.py.
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>

#include "autograd/matmul.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "tensor/random.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

constexpr AdamWNumbers kApollo{
    .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};          // TrainingArguments' adam_beta1, adam_beta2, adam_epsilon
constexpr double kAboveZero = 1e-8, kMostGrowth = 1.01;  // apollo.py

struct ApolloState {
  bool projected = false;
  std::uint64_t seed = 0;  ///< the parameter's number, from 1
  std::int64_t steps = 0;
  Tensor random;            ///< [rank, columns] or [rows, rank]
  GaLoreProjector vectors;  ///< in its place, by the largest singular vectors
  Tensor exp_avg, exp_avg_sq, norm;
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{random, exp_avg, exp_avg_sq, norm};
    vectors.add_tensors(all);
    return all;
  }
};

/// The names of the step function, which hold on to what they were given for the last parameter.
struct Locals {
  Tensor grad, denom, norm_grad, factor, scaled_grad, scaled_norm, limiter;
};

class ApolloOptimizer final : public StatefulOptimizer<ApolloState> {
 public:
  /// The second group has what is projected.
  ApolloOptimizer(const Apollo& kind, std::vector<ParameterGroup> groups, CuSolver cusolver)
      : StatefulOptimizer(std::move(groups)), kind_(kind), how_{kind.low_rank, cusolver} {
    std::size_t plain = this->groups().front().size();
    std::uint64_t number = 0;
    each([&](const Tensor&, ApolloState& state) {
      state.seed = ++number;
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
    average(ctx, state, names_.denom);
    names_.norm_grad = empty_like(ctx, names_.denom, Op::div);
    compute(ctx, Binary::div, names_.norm_grad, state.exp_avg, names_.denom);
    if (state.projected) scale_gradient(ctx, grad_of(parameter), state);
    const auto steps = static_cast<double>(state.steps);
    const double step_size =
        lr() * std::sqrt(1 - std::pow(kApollo.beta2, steps)) / (1 - std::pow(kApollo.beta1, steps));
    compute(ctx, Binary::add, parameter, parameter, names_.norm_grad, -step_size);
    if (weight_decay() > 0) compute(ctx, Unary::mul, parameter, parameter, 1 - lr() * weight_decay());
  }

  /// Both averages in place, and the root of the second.
  void average(Context& ctx, const ApolloState& state, const Tensor& denom) const {
    compute(ctx, Unary::mul, state.exp_avg, state.exp_avg, kApollo.beta1);
    compute(ctx, Binary::add, state.exp_avg, state.exp_avg, names_.grad, 1 - kApollo.beta1);
    compute(ctx, Binary::mul, denom, names_.grad, names_.grad, 1 - kApollo.beta2);
    compute(ctx, Unary::mul, state.exp_avg_sq, state.exp_avg_sq, kApollo.beta2);
    compute(ctx, Binary::add, state.exp_avg_sq, state.exp_avg_sq, denom);
    compute(ctx, Unary::sqrt, denom, state.exp_avg_sq);
    compute(ctx, Unary::add, denom, denom, kApollo.eps);
  }

  void project(Context& ctx, ApolloState& state) {
    if (kind_.proj == Apollo::Projector::svd)
      names_.grad = state.vectors.project(ctx, how_, names_.grad, state.steps);
    else
      project_by_chance(ctx, state);
  }

  void project_by_chance(Context& ctx, ApolloState& state) {
    const Tensor full = names_.grad;
    const bool right = projected_sides(how_.options.proj_type, full.size(0), full.size(1)).right;
    if (state.steps % how_.options.update_proj_gap == 0)
      state.random = random_matrix(ctx, full, right, random_key(state.seed, static_cast<std::uint64_t>(state.steps)));
    const Operand matrix{.tensor = state.random, .turned = true};
    names_.grad = right ? gemm(ctx, {full}, matrix, full.dtype()) : gemm(ctx, matrix, {full}, full.dtype());
  }

  /// stable_randn(...) / sqrt(rank) beside a float32 copy of the gradient, then cast to its dtype.
  Tensor random_matrix(Context& ctx, const Tensor& grad, bool right, std::uint64_t key) const {
    const bool wide = grad.dtype() == DType::float32;
    const Tensor matrix = wide ? grad : empty_like(ctx, grad, DType::float32, Op::to_copy);
    const Shape shape = right ? Shape{how_.options.rank, grad.size(1)} : Shape{grad.size(0), how_.options.rank};
    const Scoped category(ctx.category, wide ? Category::optimizer_state : ctx.category);
    Tensor projection;
    {
      const Tensor random = empty(ctx, shape, DType::float32, Op::empty);
      fill_normal(ctx, random, key);
      projection = empty(ctx, shape, DType::float32, wide ? Op::optimizer_state : Op::div);
      compute(ctx, Unary::mul, projection, random, 1 / std::sqrt(static_cast<double>(how_.options.rank)));
    }
    if (wide) return projection;
    const Scoped kept(ctx.category, Category::optimizer_state);
    Tensor narrow = empty(ctx, shape, grad.dtype(), Op::optimizer_state);
    copy_into(ctx, narrow, projection);
    return narrow;
  }

  /// Numbers of our own, as the library's come from its generator (Box and Muller).
  static void fill_normal(Context& ctx, const Tensor& out, std::uint64_t key) {
    if (!ctx.kernels(out)) return;
    std::vector<double> numbers(static_cast<std::size_t>(out.numel()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(random_unit(key, 2 * i))));
      numbers[i] = radius * std::cos(2 * std::numbers::pi * static_cast<double>(random_unit(key, 2 * i + 1)));
    }
    upload(ctx, out, numbers);
  }

  /// The raw gradient times the quotient of two norms, by channels or as a whole, and not much larger than it was.
  void scale_gradient(Context& ctx, const Tensor& full, ApolloState& state) {
    const int dim = full.size(0) < full.size(1) ? 0 : 1;
    const auto norm = [&](const Tensor& x) {
      if (kind_.scale_type == Apollo::Scale::tensor) return whole_norm(ctx, x);
      Tensor out = empty(ctx, {x.size(1 - dim)}, x.dtype(), Op::linear_norm);
      reduction_scratch(ctx, x, 1U << static_cast<unsigned>(dim), Op::linear_norm);
      compute(ctx, Reduce::sum_of_squares, out.view(x.shape().with(dim, 1)), x);
      compute(ctx, Unary::sqrt, out, out);
      return out;
    };
    {
      const Tensor of_update = norm(names_.norm_grad);
      const Tensor divisor = raised(ctx, [&] { return norm(names_.grad); });
      names_.factor = empty_like(ctx, of_update, Op::div);
      compute(ctx, Binary::div, names_.factor, of_update, divisor);
    }
    names_.scaled_grad = empty_like(ctx, full, Op::mul);
    const bool by_rows = kind_.scale_type == Apollo::Scale::channel && dim == 1;
    compute(ctx, Binary::mul, names_.scaled_grad, full,
            by_rows ? names_.factor.view({names_.factor.numel(), 1}) : names_.factor);
    if (state.norm.defined()) {
      names_.scaled_norm = whole_norm(ctx, names_.scaled_grad);
      {
        Tensor growth;
        {
          const Tensor divisor = empty_like(ctx, state.norm, Op::add);
          compute(ctx, Unary::add, divisor, state.norm, kAboveZero);
          growth = empty_like(ctx, names_.scaled_norm, Op::div);
          compute(ctx, Binary::div, growth, names_.scaled_norm, divisor);
        }
        scratch(ctx, 1, Op::ne);  // max() of Python compares
        names_.limiter = empty_like(ctx, growth, Op::div);
        compute(ctx, Unary::at_least, growth, growth, kMostGrowth);
        compute(ctx, Unary::mul, names_.limiter, growth, 1 / kMostGrowth);
      }
      names_.scaled_grad = divided(ctx, names_.scaled_grad, Op::div);
      const Scoped kept(ctx.category, Category::optimizer_state);
      state.norm = divided(ctx, names_.scaled_norm, Op::optimizer_state);
    } else {
      const Scoped kept(ctx.category, Category::optimizer_state);
      state.norm = whole_norm(ctx, names_.scaled_grad);
    }
    names_.norm_grad = names_.scaled_grad;
    const double scale = how_.options.scale;
    if (scale != 1) compute(ctx, Unary::mul, names_.norm_grad, names_.norm_grad, std::sqrt(scale));
  }

  Tensor divided(Context& ctx, const Tensor& x, Op op) const {
    Tensor out = empty_like(ctx, x, op);
    compute(ctx, Binary::div, out, x, names_.limiter);
    return out;
  }
  static Tensor whole_norm(Context& ctx, const Tensor& x) {
    Tensor out = empty(ctx, {}, x.dtype(), Op::linear_norm);
    full_reduction_scratch(ctx, x.numel(), Op::linear_norm);
    reduce_all(ctx, Reduce::sum_of_squares, out, x);
    compute(ctx, Unary::sqrt, out, out);
    return out;
  }
  static Tensor raised(Context& ctx, const std::function<Tensor()>& norm) {
    const Tensor plain = norm();
    Tensor out = empty_like(ctx, plain, Op::add);
    compute(ctx, Unary::add, out, plain, kAboveZero);
    return out;
  }

  Apollo kind_;
  Projection how_;
  Locals names_;
};

}  // namespace

std::unique_ptr<Optimizer> make_apollo(const Apollo& kind, std::vector<ParameterGroup> groups,
                                       const OptimizerBehaviour& behaviour) {
  return std::make_unique<ApolloOptimizer>(kind, std::move(groups), behaviour.cusolver);
}

}  // namespace qlp

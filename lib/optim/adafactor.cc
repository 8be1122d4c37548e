// transformers/optimization.py, Adafactor with scale_parameter and relative_step off, as the Trainer makes it;
// transformers 4.48 to 5.24.
#include <cmath>

#include "optim/clip_grad_norm.h"
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct AdafactorState {
  Tensor exp_avg_sq_row, exp_avg_sq_col;  ///< of matrices
  Tensor exp_avg_sq;                      ///< of anything else
  Tensor rms;                             ///< of the parameter
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const { return {exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq, rms}; }
};

/// tensor.norm(2) / tensor.numel() ** 0.5
Tensor root_mean_square(Context& ctx, const Tensor& tensor) {
  const Tensor norm = empty(ctx, {}, tensor.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, tensor.numel(), Op::linear_norm);
  norm_into(ctx, norm, tensor);
  Tensor mean = empty(ctx, {}, tensor.dtype(), Op::div);
  compute(ctx, Unary::mul, mean, norm, 1 / std::sqrt(static_cast<double>(tensor.numel())));
  return mean;
}

/// grad ** 2 + eps
Tensor square_plus(Context& ctx, const Tensor& grad) {
  constexpr double kEps = 1e-30;
  const Tensor square = empty_like(ctx, grad, Op::pow);
  compute(ctx, Unary::square, square, grad);
  Tensor sum = empty_like(ctx, square, Op::add);
  compute(ctx, Unary::add, sum, square, kEps);
  return sum;
}

/// A shape without one of its dimensions, counted from the end.
Shape without(const Shape& shape, int dim) {
  Shape rest;
  for (int i = 0; i < static_cast<int>(shape.rank()); ++i)
    if (i != static_cast<int>(shape.rank()) + dim) rest.push_back(shape[i]);
  return rest;
}

/// state = decay * state + (1 - decay) * other
void average_into(Context& ctx, const Tensor& state, const Tensor& other, double decay) {
  compute(ctx, Unary::mul, state, state, decay);
  compute(ctx, Binary::add, state, state, other, 1 - decay);
}

/// update.mean(dim), which is added to the state.
void average_mean_over(Context& ctx, const Tensor& update, int dim, const Tensor& state, double decay) {
  const Tensor mean = empty(ctx, without(update.shape(), dim), update.dtype(), Op::mean);
  reduction_scratch(ctx, update, DimensionMask{1} << (static_cast<int>(update.shape().rank()) + dim), Op::mean);
  const double share = 1 / static_cast<double>(update.shape()[dim]);
  compute(ctx, Reduce::sum, mean.view(update.shape().with(dim, 1)), update, share);
  average_into(ctx, state, mean, decay);
}

/// _approx_sq_grad: the product of what rows and columns say.
Tensor approx_sq_grad(Context& ctx, const AdafactorState& state, const Shape& shape) {
  const Tensor &row = state.exp_avg_sq_row, &column = state.exp_avg_sq_col;
  Tensor mean = empty(ctx, row.shape().with(-1, 1), DType::float32, Op::mean);
  reduction_scratch(ctx, row, DimensionMask{1} << (row.shape().rank() - 1), Op::mean);
  compute(ctx, Reduce::sum, mean, row, 1 / static_cast<double>(row.shape()[-1]));
  Tensor r_factor = empty_like(ctx, row, Op::div);
  compute(ctx, Binary::div, r_factor, row, mean);
  compute(ctx, Unary::rsqrt, r_factor, r_factor);
  mean.reset();
  const Tensor c_factor = empty_like(ctx, column, Op::rsqrt);
  compute(ctx, Unary::rsqrt, c_factor, column);
  Tensor product = empty(ctx, shape, DType::float32, Op::mul);
  compute(ctx, Binary::mul, product, r_factor.view(shape.with(-1, 1)), c_factor.view(shape.with(-2, 1)));
  r_factor.reset();
  return product;
}

class AdafactorOptimizer final : public StatefulOptimizer<AdafactorState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  /// Names of a Python loop: each holds on to its tensor until it gets the next one.
  struct Names {
    Tensor grad, p_data_fp32, update;
  };

  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) update(ctx, *parameter, *state);
  }
  /// The names outlive the loop over one group, but not the step.
  void end_step() override { names_ = {}; }

  void update(Context& ctx, const Tensor& parameter, AdafactorState& state) {
    auto& [grad, p_data_fp32, update] = names_;
    grad = grad_of(parameter);
    if (grad.dtype() != DType::float32) {
      grad = empty_like(ctx, grad_of(parameter), DType::float32, Op::to_copy);
      copy_into(ctx, grad, grad_of(parameter));
    }
    const bool factored = grad.shape().rank() >= 2;
    if (!state.rms.defined()) init_state(ctx, grad, factored, state);
    p_data_fp32 = parameter;
    const bool casts = parameter.dtype() != DType::float32;
    if (casts)
      p_data_fp32 = empty_like(ctx, parameter, DType::float32, Op::to_copy), copy_into(ctx, p_data_fp32, parameter);
    state.rms = root_mean_square(ctx, p_data_fp32);
    state.rms.storage().set_label({Category::optimizer_state, static_cast<std::uint32_t>(Op::div), ctx.module});

    constexpr double kDecayRate = -0.8;
    const double decay = 1 - std::pow(static_cast<double>(++state.steps), kDecayRate);
    update = square_plus(ctx, grad);
    if (factored) {
      average_mean_over(ctx, update, -1, state.exp_avg_sq_row, decay);
      average_mean_over(ctx, update, -2, state.exp_avg_sq_col, decay);
      update = approx_sq_grad(ctx, state, grad.shape());
    } else {
      average_into(ctx, state.exp_avg_sq, update, decay);
      update = empty_like(ctx, state.exp_avg_sq, Op::rsqrt);
      compute(ctx, Unary::rsqrt, update, state.exp_avg_sq);
    }
    compute(ctx, Binary::mul, update, update, grad);
    {
      const Tensor rms = root_mean_square(ctx, update);
      const Tensor ratio = empty(ctx, {}, DType::float32, Op::div);  // over clip_threshold, 1
      compute(ctx, Unary::at_least, ratio, rms, 1);
      compute(ctx, Binary::div, update, update, ratio);
    }
    compute(ctx, Unary::mul, update, update, lr());
    const Tensor negative = empty_like(ctx, update, Op::neg);
    compute(ctx, Unary::neg, negative, update);
    if (weight_decay() != 0) compute(ctx, Unary::mul, p_data_fp32, p_data_fp32, 1 - lr() * weight_decay());
    compute(ctx, Binary::add, p_data_fp32, p_data_fp32, negative);
    if (casts) copy_into(ctx, parameter, p_data_fp32);
  }

  static void init_state(Context& ctx, const Tensor& grad, bool factored, AdafactorState& state) {
    if (!factored) {
      state.exp_avg_sq = state_like(ctx, grad);
      return;
    }
    // Made on the host and copied, which waits for the GPU.
    state.exp_avg_sq_row = state_of(ctx, without(grad.shape(), -1), DType::float32);
    ctx.device.synchronize();
    state.exp_avg_sq_col = state_of(ctx, without(grad.shape(), -2), DType::float32);
    ctx.device.synchronize();
  }

  Names names_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(std::vector<ParameterGroup> groups) {
  return std::make_unique<AdafactorOptimizer>(std::move(groups));
}

}  // namespace qlp

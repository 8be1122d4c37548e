// transformers/optimization.py, Adafactor with scale_parameter and relative_step off, as the Trainer makes it;
// transformers 4.48 to 5.24.
#include "optim/optimizer_state.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

struct AdafactorState {
  Tensor exp_avg_sq_row, exp_avg_sq_col;  ///< of matrices
  Tensor exp_avg_sq;                      ///< of anything else
  Tensor rms;                             ///< of the parameter
};

/// tensor.norm(2) / tensor.numel() ** 0.5
Tensor root_mean_square(Context& ctx, const Tensor& tensor) {
  const Tensor norm = empty(ctx, {}, tensor.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, tensor.numel(), Op::linear_norm);
  return empty(ctx, {}, tensor.dtype(), Op::div);
}

/// grad ** 2 + eps
Tensor square_plus(Context& ctx, const Tensor& grad) {
  const Tensor square = empty_like(ctx, grad, Op::pow);
  return empty_like(ctx, square, Op::add);
}

/// A shape without one of its dimensions, counted from the end.
Shape without(const Shape& shape, int dim) {
  Shape rest;
  for (int i = 0; i < static_cast<int>(shape.rank()); ++i)
    if (i != static_cast<int>(shape.rank()) + dim) rest.push_back(shape[i]);
  return rest;
}

/// update.mean(dim), whose result is added to the state.
void mean_over(Context& ctx, const Tensor& update, int dim) {
  const Tensor mean = empty(ctx, without(update.shape(), dim), update.dtype(), Op::mean);
  reduction_scratch(ctx, update, DimensionMask{1} << (static_cast<int>(update.shape().rank()) + dim), Op::mean);
}

/// _approx_sq_grad: the product of what rows and columns say.
Tensor approx_sq_grad(Context& ctx, const AdafactorState& state, const Shape& shape) {
  const Tensor& row = state.exp_avg_sq_row;
  Tensor mean = empty(ctx, row.shape().with(-1, 1), DType::float32, Op::mean);
  reduction_scratch(ctx, row, DimensionMask{1} << (row.shape().rank() - 1), Op::mean);
  Tensor r_factor = empty_like(ctx, row, Op::div);
  mean.reset();
  const Tensor c_factor = empty_like(ctx, state.exp_avg_sq_col, Op::rsqrt);
  Tensor product = empty(ctx, shape, DType::float32, Op::mul);
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
    if (grad.dtype() != DType::float32) grad = empty_like(ctx, grad, DType::float32, Op::to_copy);
    const bool factored = grad.shape().rank() >= 2;
    if (!state.rms.defined()) init_state(ctx, grad, factored, state);
    p_data_fp32 = parameter;
    if (parameter.dtype() != DType::float32) p_data_fp32 = empty_like(ctx, parameter, DType::float32, Op::to_copy);
    state.rms = root_mean_square(ctx, p_data_fp32);
    state.rms.storage().set_label({Category::optimizer_state, static_cast<std::uint32_t>(Op::div), ctx.module});

    update = square_plus(ctx, grad);
    if (factored) {
      mean_over(ctx, update, -1);
      mean_over(ctx, update, -2);
      update = approx_sq_grad(ctx, state, grad.shape());
    } else {
      update = empty_like(ctx, state.exp_avg_sq, Op::rsqrt);
    }
    {
      const Tensor rms = root_mean_square(ctx, update);
      const Tensor ratio = empty(ctx, {}, DType::float32, Op::div);
    }
    scratch(ctx, bytes_of(update.shape(), update.dtype()).count(), Op::neg);
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

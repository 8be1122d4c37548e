// transformers/optimization.py, Adafactor, 4.48 to 5.24; lomo_optim 0.1.1, adalomo.py, which has it from there.
#include "optim/factored_moment.h"

#include <cmath>

#include "optim/clip_grad_norm.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {

Tensor root_mean_square(Context& ctx, const Tensor& tensor) {
  const Tensor norm = empty(ctx, {}, tensor.dtype(), Op::linear_norm);
  full_reduction_scratch(ctx, tensor.numel(), Op::linear_norm);
  norm_into(ctx, norm, tensor);
  Tensor mean = empty(ctx, {}, tensor.dtype(), Op::div);
  compute(ctx, Unary::mul, mean, norm, 1 / std::sqrt(static_cast<double>(tensor.numel())));
  return mean;
}

Shape without(const Shape& shape, int dim) {
  Shape rest;
  for (int i = 0; i < static_cast<int>(shape.rank()); ++i)
    if (i != static_cast<int>(shape.rank()) + dim) rest.push_back(shape[i]);
  return rest;
}

namespace {

/// grad ** 2 + eps
Tensor square_plus(Context& ctx, const Tensor& grad) {
  constexpr double kEps = 1e-30;
  const Tensor square = empty_like(ctx, grad, Op::pow);
  compute(ctx, Unary::square, square, grad);
  Tensor sum = empty_like(ctx, square, Op::add);
  compute(ctx, Unary::add, sum, square, kEps);
  return sum;
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
Tensor approx_sq_grad(Context& ctx, const FactoredMoment& moment, const Shape& shape) {
  const Tensor &row = moment.row, &column = moment.column;
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

}  // namespace

void scale_by_moment(Context& ctx, const FactoredMoment& moment, const Tensor& grad, double decay, Tensor& update) {
  update = square_plus(ctx, grad);
  if (moment.row.defined()) {
    average_mean_over(ctx, update, -1, moment.row, decay);
    average_mean_over(ctx, update, -2, moment.column, decay);
    update = approx_sq_grad(ctx, moment, grad.shape());
  } else {
    average_into(ctx, moment.all, update, decay);
    update = empty_like(ctx, moment.all, Op::rsqrt);
    compute(ctx, Unary::rsqrt, update, moment.all);
  }
  compute(ctx, Binary::mul, update, update, grad);
  const Tensor rms = root_mean_square(ctx, update);
  const Tensor ratio = empty(ctx, {}, DType::float32, Op::div);  // over clip_threshold, 1
  compute(ctx, Unary::at_least, ratio, rms, 1);
  compute(ctx, Binary::div, update, update, ratio);
}

}  // namespace qlp

#include "shard/zero_norm.h"

#include <algorithm>
#include <utility>

#include "optim/clip_grad_norm.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

Tensor scalar(Context& ctx, DType dtype, Op op) { return empty(ctx, {}, dtype, op); }

/// mask_nan_or_inf_with_val_inplace
void mask_nan_or_inf(Context& ctx) {
  Tensor magnitude = scalar(ctx, DType::float32, Op::abs);
  const Tensor is_inf = scalar(ctx, DType::boolean, Op::eq);
  magnitude.reset();
  const Tensor is_nan = scalar(ctx, DType::boolean, Op::ne);
  const Tensor either = scalar(ctx, DType::boolean, Op::logical_or);
  const Tensor error = scalar(ctx, DType::float32, Op::input);
}

}  // namespace

Tensor double_norm(Context& ctx, const Tensor& gradient) {
  const std::int64_t numel = gradient.numel();
  const Tensor wide = empty(ctx, {numel}, DType::float64, Op::to_copy);
  copy_elements(ctx, wide, gradient);
  Tensor norm = scalar(ctx, DType::float64, Op::linear_norm);
  full_reduction_scratch(ctx, numel, Op::linear_norm, size_of(DType::float64));
  norm_into(ctx, norm, wide);
  return norm;
}

Tensor join_norms(Context& ctx, const std::vector<Tensor>& norms, const RankGroup& group) {
  Tensor total;
  if (norms.empty()) {
    total = scalar(ctx, DType::float32, Op::input);
    fill(ctx, total, 0);
  } else {
    const Shape count{static_cast<std::int64_t>(norms.size())};
    Tensor stacked = empty(ctx, count, DType::float64, Op::stack);
    stack_into(ctx, stacked, norms);
    Tensor squared = empty(ctx, count, DType::float64, Op::pow);
    compute(ctx, Unary::square, squared, stacked);
    stacked.reset();
    const Tensor sum = scalar(ctx, DType::float64, Op::sum);
    reduce_all(ctx, Reduce::sum, sum, squared);
    squared.reset();
    total = scalar(ctx, DType::float32, Op::to_copy);
    copy_into(ctx, total, sum);
  }
  all_reduce(ctx, group, total, ReduceOp::sum);
  const Tensor root = scalar(ctx, DType::float32, Op::pow);
  compute(ctx, Unary::sqrt, root, total);
  total = root;
  mask_nan_or_inf(ctx);
  return total;
}

Tensor global_norm(Context& ctx, const std::vector<Tensor>& group_norms) {
  const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(group_norms.size())}, DType::float32, Op::stack);
  stack_into(ctx, stacked, group_norms);
  Tensor norm = scalar(ctx, DType::float32, Op::linear_norm);
  norm_into(ctx, norm, stacked);
  return norm;
}

Tensor inf_or_nan(Context& ctx, const Tensor& gradient) {
  const bool casts = gradient.dtype() != DType::float32;
  const Tensor wide = casts ? empty_like(ctx, gradient, DType::float32, Op::to_copy) : gradient;
  const Tensor is_nan = empty_like(ctx, wide, DType::boolean, Op::ne);
  Tensor magnitude = empty_like(ctx, wide, Op::abs);
  const Tensor is_inf = empty_like(ctx, wide, DType::boolean, Op::eq);
  magnitude.reset();
  const Tensor either = empty_like(ctx, wide, DType::boolean, Op::logical_or);
  const Tensor numbers = empty_like(ctx, wide, DType::float32, Op::to_copy);
  Tensor worst = scalar(ctx, DType::float32, Op::max);
  full_reduction_scratch(ctx, gradient.numel(), Op::max);
  if (Kernels* kernels = ctx.kernels(gradient)) {
    kernels->fill(ctx.stream, array_of(worst), 0);
    kernels->flag_non_finite(ctx.stream, array_of(worst), array_of(gradient));
  }
  return worst;
}

void unscale_and_clip(Context& ctx, const Tensor& gradient, const Tensor& norm, const ZeroClipping& clipping) {
  if (clipping.max_norm <= 0) {  // by a Python number
    if (clipping.loss_scale != 1) compute(ctx, Unary::mul, gradient, gradient, 1 / clipping.loss_scale);
    return;
  }
  constexpr double kEps = 1e-6;
  struct Step {
    Op name;
    Unary op;
    double p;
  };
  Tensor scale = scalar(ctx, DType::float32, Op::div);
  if (norm.defined()) compute(ctx, Unary::mul, scale, norm, 1 / clipping.loss_scale);
  for (const Step& step : {Step{Op::add, Unary::add, kEps}, Step{Op::div, Unary::mul, 1 / clipping.max_norm},
                           Step{Op::clamp, Unary::at_least, 1}, Step{Op::mul, Unary::mul, clipping.loss_scale}}) {
    Tensor next = scalar(ctx, DType::float32, step.name);
    compute(ctx, step.op, next, scale, step.p);
    scale = std::move(next);
  }
  Tensor reciprocal = scalar(ctx, DType::float32, Op::reciprocal);
  compute(ctx, Unary::reciprocal, reciprocal, scale);
  compute(ctx, Binary::mul, gradient, gradient, reciprocal);  // in place
  reciprocal = scalar(ctx, DType::float32, Op::mul);
}

void unscale_and_clip_by_number(Context& ctx, const Tensor& gradient, double norm, const ZeroClipping& clipping) {
  constexpr double kEps = 1e-6;
  const double excess = clipping.max_norm > 0 ? (norm / clipping.loss_scale + kEps) / clipping.max_norm : 1;
  const double factor = clipping.loss_scale * std::max(excess, 1.0);
  if (factor != 1) compute(ctx, Unary::mul, gradient, gradient, 1 / factor);
}

}  // namespace qlp

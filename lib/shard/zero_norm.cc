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
  return worst;
}

void unscale_and_clip(Context& ctx, const Tensor& gradient, const Tensor& norm, double gradient_clipping) {
  if (gradient_clipping <= 0) return;  // by a Python number
  constexpr double kEps = 1e-6, kLossScale = 1;
  struct Step {
    Op name;
    Unary op;
    double p;
  };
  const Tensor& total = norm;
  Tensor scale = scalar(ctx, DType::float32, Op::div);
  if (total.defined()) compute(ctx, Unary::mul, scale, total, 1 / kLossScale);
  for (const Step& step : {Step{Op::add, Unary::add, kEps}, Step{Op::div, Unary::mul, 1 / gradient_clipping},
                           Step{Op::clamp, Unary::at_least, 1}, Step{Op::mul, Unary::mul, kLossScale}}) {
    Tensor next = scalar(ctx, DType::float32, step.name);
    compute(ctx, step.op, next, scale, step.p);
    scale = std::move(next);
  }
  Tensor reciprocal = scalar(ctx, DType::float32, Op::reciprocal);
  compute(ctx, Unary::reciprocal, reciprocal, scale);
  compute(ctx, Binary::mul, gradient, gradient, reciprocal);  // in place
  reciprocal = scalar(ctx, DType::float32, Op::mul);
}

void clip_by_number(Context& ctx, const Tensor& gradient, double norm, double gradient_clipping) {
  constexpr double kEps = 1e-6;
  if (gradient_clipping > 0)
    compute(ctx, Unary::mul, gradient, gradient, 1 / std::max((norm + kEps) / gradient_clipping, 1.0));
}

}  // namespace qlp

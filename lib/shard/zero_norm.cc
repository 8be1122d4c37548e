#include "shard/zero_norm.h"

#include <utility>

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

Tensor double_norm(Context& ctx, std::int64_t numel) {
  const Tensor wide = empty(ctx, {numel}, DType::float64, Op::to_copy);
  Tensor norm = scalar(ctx, DType::float64, Op::linear_norm);
  full_reduction_scratch(ctx, numel, Op::linear_norm, size_of(DType::float64));
  return norm;
}

Tensor join_norms(Context& ctx, std::vector<Tensor> norms) {
  Tensor total;
  if (norms.empty()) {
    total = scalar(ctx, DType::float32, Op::input);
  } else {
    const Shape count{static_cast<std::int64_t>(norms.size())};
    Tensor stacked = empty(ctx, count, DType::float64, Op::stack);
    Tensor squared = empty(ctx, count, DType::float64, Op::pow);
    stacked.reset();
    const Tensor sum = scalar(ctx, DType::float64, Op::sum);
    squared.reset();
    total = scalar(ctx, DType::float32, Op::to_copy);
  }
  total = scalar(ctx, DType::float32, Op::pow);
  mask_nan_or_inf(ctx);
  return total;
}

Tensor global_norm(Context& ctx, std::vector<Tensor> group_norms) {
  const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(group_norms.size())}, DType::float32, Op::stack);
  return scalar(ctx, DType::float32, Op::linear_norm);
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

void unscale_and_clip(Context& ctx, bool clips) {
  if (!clips) return;                                   // by a Python number
  Tensor scale = scalar(ctx, DType::float32, Op::div);  // total_norm / loss_scale
  for (const Op op : {Op::add, Op::div, Op::clamp, Op::mul}) {
    Tensor next = scalar(ctx, DType::float32, op);
    scale = std::move(next);
  }
  Tensor reciprocal = scalar(ctx, DType::float32, Op::reciprocal);
  reciprocal = scalar(ctx, DType::float32, Op::mul);
}

}  // namespace qlp

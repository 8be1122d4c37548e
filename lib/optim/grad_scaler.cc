#include "optim/grad_scaler.h"

#include "autograd/pointwise.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

// torch/amp/grad_scaler.py
constexpr double kInitScale = 65536, kGrowth = 2, kBackoff = 0.5;
constexpr std::int64_t kGrowthInterval = 2000;

}  // namespace

/// _lazy_init_scale_growth_tracker
void GradScaler::begin(Context& ctx) {
  if (scale_.defined()) return;
  const Scoped category(ctx.category, Category::workspace);
  scale_ = empty(ctx, {}, DType::float32, Op::zeros);
  growth_tracker_ = empty(ctx, {}, DType::int32, Op::zeros);
  fill(ctx, scale_, kInitScale);
}

Tensor GradScaler::scale(Context& ctx, const Tensor& loss) {
  begin(ctx);
  return mul(ctx, loss, scale_);
}

/// grad_scaler.py, unscale_: self._scale.double().reciprocal().float()
void GradScaler::unscale(Context& ctx, const std::vector<Tensor>& parameters) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor wide = empty(ctx, {}, DType::float64, Op::to_copy);
  Tensor inverse = empty(ctx, {}, DType::float64, Op::reciprocal);
  wide.reset();
  const Tensor inv_scale = empty(ctx, {}, DType::float32, Op::to_copy);
  inverse.reset();
  found_inf_ = empty(ctx, {}, DType::float32, Op::zeros);
  compute(ctx, Unary::reciprocal, inv_scale, scale_);
  fill(ctx, found_inf_, 0);
  for (const Tensor& parameter : parameters)
    if (const Tensor& grad = grad_of(parameter); grad.defined()) {  // _amp_foreach_non_finite_check_and_unscale_
      if (Kernels* kernels = ctx.kernels(grad))
        kernels->flag_non_finite(ctx.stream, array_of(found_inf_), array_of(grad));
      compute(ctx, Binary::mul, grad, grad, inv_scale);
    }
  // fsdp/sharded_grad_scaler.py, unscale_; DTensor's found_inf is partial (_amp_foreach_non_finite_check_and_unscale_).
  all_reduce(ctx, sharing_, found_inf_, ReduceOp::max);
}

bool GradScaler::found_inf(Context& ctx) const { return item(ctx, found_inf_) != 0; }

void GradScaler::update(Context& ctx) {
  const bool bad = found_inf(ctx);
  good_steps_ = bad ? 0 : good_steps_ + 1;
  if (bad) compute(ctx, Unary::mul, scale_, scale_, kBackoff);
  if (good_steps_ == kGrowthInterval) compute(ctx, Unary::mul, scale_, scale_, kGrowth), good_steps_ = 0;
  found_inf_.reset();
}

}  // namespace qlp

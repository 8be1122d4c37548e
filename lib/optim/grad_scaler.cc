#include "optim/grad_scaler.h"

#include "autograd/pointwise.h"
#include "tensor/factories.h"

namespace qlp {

Tensor GradScaler::scale(Context& ctx, const Tensor& loss) {
  if (!scale_.defined()) {
    const Scoped category(ctx.category, Category::workspace);
    scale_ = empty(ctx, {}, DType::float32, Op::zeros);
    growth_tracker_ = empty(ctx, {}, DType::int32, Op::zeros);
  }
  return mul(ctx, loss, scale_);
}

/// grad_scaler.py, unscale_: self._scale.double().reciprocal().float()
void GradScaler::unscale(Context& ctx) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor wide = empty(ctx, {}, DType::float64, Op::to_copy);
  Tensor inverse = empty(ctx, {}, DType::float64, Op::reciprocal);
  wide.reset();
  const Tensor inv_scale = empty(ctx, {}, DType::float32, Op::to_copy);
  inverse.reset();
  found_inf_ = empty(ctx, {}, DType::float32, Op::zeros);
}

}  // namespace qlp

#include "nn/param_lora.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/grouped_mm.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"

namespace qlp {

ParamLora::ParamLora(std::string full_name, Parameter& base, std::int64_t r, double scaling, bool turned)
    : Module(ModuleKind::param_lora, std::move(full_name)),
      base_(&base),
      experts_(base.shape.rank() == 3 ? base.shape[0] : 1),
      out_(base.shape[turned ? -1 : -2]),
      in_(base.shape[turned ? -2 : -1]),
      r_(r),
      scaling_(scaling),
      turned_(turned) {
  a_ = std::make_unique<Linear>(name() + ".lora_A.default", in_, r_ * experts_, false, ParamRole::lora_a,
                                ModuleKind::lora_matrix);
  b_ = std::make_unique<Linear>(name() + ".lora_B.default", r_ * experts_, out_, false, ParamRole::lora_b,
                                ModuleKind::lora_matrix);
  add_child(*a_), add_child(*b_);
}

ParamLora::Factors ParamLora::activate_stack(Context& ctx) {
  Factors factors;
  Tensor right = reshape(ctx, a_->weight().tensor, {experts_, r_, in_});
  Tensor left = reshape(ctx, b_->weight().tensor, {out_, r_, experts_});
  left = transpose(ctx, left, 0, 2);
  left = transpose(ctx, left, 1, 2);
  if (turned_) {
    right = transpose(ctx, right, 1, 2), left = transpose(ctx, left, 1, 2);
    std::swap(left, right);
  }
  factors.left = to(ctx, left, base_->tensor.dtype());
  factors.right = to(ctx, right, base_->tensor.dtype());
  fold(ctx, factors);
  return factors;
}

Tensor ParamLora::fold(Context& ctx, const Factors& factors) {
  return add_products(ctx, base_->tensor, factors.left, factors.right, scaling_);
}

Tensor ParamLora::activate_matrix(Context& ctx) {
  Tensor update;
  {
    const Tensor a = autocast_low(ctx, a_->weight().tensor), b = autocast_low(ctx, b_->weight().tensor);
    const Tensor product = mm(ctx, b, a);
    update = scale(ctx, product, scaling_);
  }
  update = to(ctx, update, base_->tensor.dtype());
  fold(ctx, update);
  return update;
}

Tensor ParamLora::fold(Context& ctx, const Tensor& update) { return add(ctx, base_->tensor, update); }

}  // namespace qlp

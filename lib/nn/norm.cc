#include "nn/norm.h"

#include <utility>

#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "tensor/collective.h"

namespace qlp {
namespace {

/// x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) of a float32 x; `variance` outlives the call where Python names it.
Tensor normalise(Context& ctx, const Tensor& x, double eps, Tensor& variance) {
  {
    const Tensor power = square(ctx, x);
    variance = mean_last(ctx, power);
  }
  Tensor root = add_scalar(ctx, variance, eps);
  root = rsqrt(ctx, root);
  return mul(ctx, x, root);
}

}  // namespace

RmsNorm::RmsNorm(std::string name, std::int64_t width, NormKind kind, double eps, std::optional<LigerNorm> liger)
    : Module(ModuleKind::norm, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::norm, {width})),
      kind_(kind),
      eps_(eps),
      liger_(liger) {}

void RmsNorm::train_copy() {
  weight_ = &add_parameter("modules_to_save.default.weight", ParamRole::modules_to_save, weight_->shape);
}

/// ReplicatedWithGradAllReduce of transformers distributed/tensor_parallel.py, 5.24: in place, as often as the gradient
/// is added to.
void RmsNorm::hook_gain(const Context& ctx) {
  const Tensor& gain = weight_->tensor;
  if (group_.size == 1 || !ctx.grad_enabled || !gain.requires_grad() || (hooked_.defined() && hooked_.is(gain))) return;
  hooked_ = gain;
  register_post_accumulate_hook(gain, [this](Context& c) { all_reduce(c, group_, grad_of(hooked_), ReduceOp::sum); });
}

Tensor RmsNorm::forward(Context& ctx, const Tensor& input) {
  return call(ctx, input, [&](const Tensor& x) {
    hook_gain(ctx);
    if (liger_) return liger_rms_norm(ctx, x, weight_->tensor, *liger_, {eps_, kind_ == NormKind::gemma ? 1.0 : 0.0});
    if (kind_ == NormKind::gemma) return gemma(ctx, x);
    if (kind_ == NormKind::cohere) return cohere(ctx, x);
    Tensor variance;  // goes last
    Tensor hidden = to(ctx, x, DType::float32);
    hidden = normalise(ctx, hidden, eps_, variance);
    if (kind_ == NormKind::llama) return mul(ctx, weight_->tensor, to(ctx, hidden, x.dtype()));
    return to(ctx, mul(ctx, weight_->tensor, hidden), x.dtype());
  });
}

Tensor RmsNorm::gemma(Context& ctx, const Tensor& x) {
  Tensor output;
  {
    const Tensor hidden = to(ctx, x, DType::float32);
    Tensor variance;
    {
      const Tensor power = square(ctx, hidden);
      variance = mean_last(ctx, power);
    }
    variance = add_scalar(ctx, variance, eps_);
    variance = rsqrt(ctx, variance);
    output = mul(ctx, hidden, variance);
  }
  Tensor product;
  {
    Tensor gain = to(ctx, weight_->tensor, DType::float32);
    gain = add_scalar(ctx, gain, 1);
    product = mul(ctx, output, gain);
  }
  output = std::move(product);
  return to(ctx, output, x.dtype());
}

Tensor RmsNorm::cohere(Context& ctx, const Tensor& x) {
  Tensor hidden = to(ctx, x, DType::float32);
  const Tensor mean = mean_last(ctx, hidden);
  Tensor variance;
  {
    const Tensor apart = sub(ctx, hidden, mean);
    const Tensor power = square(ctx, apart);
    variance = mean_last(ctx, power);
  }
  {
    const Tensor apart = sub(ctx, hidden, mean);
    Tensor root = add_scalar(ctx, variance, eps_);
    root = rsqrt(ctx, root);
    hidden = mul(ctx, apart, root);
  }
  {
    const Tensor gain = to(ctx, weight_->tensor, DType::float32);
    hidden = mul(ctx, gain, hidden);
  }
  return to(ctx, hidden, x.dtype());
}

}  // namespace qlp

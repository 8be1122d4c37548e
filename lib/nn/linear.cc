#include "nn/linear.h"

#include <utility>

#include "autograd/matmul.h"
#include "autograd/pointwise.h"

namespace qlp {
namespace {

Tensor tensor_of(const Parameter* parameter) { return parameter ? parameter->tensor : Tensor(); }

}  // namespace

Linear::Linear(std::string name, std::int64_t in, std::int64_t out, bool bias, ParamRole role, ModuleKind kind)
    : LinearModule(kind, std::move(name)), weight_(&add_parameter("weight", role, {out, in})) {
  if (bias) bias_ = &add_parameter("bias", ParamRole::bias, {out});
}

void Linear::tie(Parameter& shared) {
  own_parameters().clear();
  share_parameter(shared);
  weight_ = &shared;
}

void Linear::train_copy() {
  weight_ = &add_parameter("modules_to_save.default.weight", ParamRole::modules_to_save, weight_->shape);
}

Tensor Linear::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) { return linear(ctx, input, weight_->tensor, tensor_of(bias_)); });
}

Linear4bit::Linear4bit(std::string name, std::int64_t in, std::int64_t out, bool bias, const FourBitCompute& compute)
    : LinearModule(ModuleKind::linear_4bit, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::base_weight, {out, in})),
      compute_(compute) {
  weight_->quantize = true;
  if (bias) bias_ = &add_parameter("bias", ParamRole::bias, {out});
}

Tensor Linear4bit::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) {
    return linear_4bit(ctx, input, {weight_->tensor, weight_->quant.get()}, tensor_of(bias_), compute_);
  });
}

LoraLinear::LoraLinear(std::string full_name, std::unique_ptr<LinearModule> base, const LoraOptions& options,
                       const AdapterBehaviour& behaviour)
    : LinearModule(ModuleKind::lora_linear, std::move(full_name)),
      base_(std::move(base)),
      options_(options),
      behaviour_(behaviour) {
  const Shape& weight = base_->weight().shape;
  a_ = std::make_unique<Linear>(name() + ".lora_A.default", weight[1], options.r, false, ParamRole::lora_a,
                                ModuleKind::lora_matrix);
  b_ = std::make_unique<Linear>(name() + ".lora_B.default", options.r, weight[0], false, ParamRole::lora_b,
                                ModuleKind::lora_matrix);
  add_child(*base_), add_child(*a_), add_child(*b_);
}

Tensor LoraLinear::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) {
    return base_->kind() == ModuleKind::linear_4bit ? on_4bit(ctx, input) : plain(ctx, input);
  });
}

/// lora_B(lora_A(dropout(x))) * scaling
Tensor LoraLinear::delta(Context& ctx, const Tensor& x) {
  Tensor t = options_.dropout ? dropout(ctx, x) : x;
  t = a_->forward(ctx, t);
  t = b_->forward(ctx, t);
  return scale(ctx, t);
}

Tensor LoraLinear::plain(Context& ctx, const Tensor& input) {
  Tensor result = base_->forward(ctx, input);
  const DType result_dtype = result.dtype();
  const Tensor x = ctx.autocast.enabled && !behaviour_.casts_input_under_autocast
                       ? input
                       : to(ctx, input, a_->weight().tensor.dtype());
  {
    const Tensor update = delta(ctx, x);
    result = add(ctx, result, update);
  }
  return to(ctx, result, result_dtype);
}

Tensor LoraLinear::on_4bit(Context& ctx, const Tensor& input) {
  Tensor result = base_->forward(ctx, input);
  result = clone(ctx, result);
  const bool converts = !ctx.autocast.enabled;
  const Tensor x = converts ? to(ctx, input, a_->weight().tensor.dtype()) : input;
  Tensor output = delta(ctx, x);
  if (converts) output = to(ctx, output, result.dtype());
  result = add(ctx, result, output);
  return result;
}

}  // namespace qlp

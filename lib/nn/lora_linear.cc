#include "nn/lora_linear.h"

#include <utility>

#include "autograd/pointwise.h"

namespace qlp {

LoraLinear::LoraLinear(std::string full_name, std::unique_ptr<LinearModule> base, const LoraOptions& options,
                       const AdapterBehaviour& behaviour)
    : LinearModule(ModuleKind::lora_linear, std::move(full_name)),
      base_(std::move(base)),
      options_(options),
      behaviour_(behaviour) {
  const Shape& weight = base_->weight().shape;
  a_ = std::make_unique<Linear>(name() + ".lora_A.default", weight[1], options.r, false, ParamRole::lora_a,
                                ModuleKind::lora_matrix);
  b_ = std::make_unique<Linear>(name() + ".lora_B.default", options.r, weight[0], options.bias, ParamRole::lora_b,
                                ModuleKind::lora_matrix);
  if (options.parallel.cuts_output()) b_->share(options.parallel);
  add_child(*base_), add_child(*a_), add_child(*b_);
  if (!options.dora) return;
  dora_ = std::make_unique<DoraLayer>(name() + ".lora_magnitude_vector.default", weight[0], options.scaling, behaviour);
  add_child(*dora_);
}

Tensor LoraLinear::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) {
    const ModuleKind kind = base_->kind();
    return kind == ModuleKind::linear_4bit || kind == ModuleKind::linear_8bit ? on_quantized(ctx, input)
                                                                              : plain(ctx, input);
  });
}

Tensor LoraLinear::delta(Context& ctx, const Tensor& x) {
  // The module for dropout, or nn.Identity, has no object here: its result is told to hooks on every module.
  Tensor t = further_input(ctx, drops(ctx) ? dropout(ctx, x, options_.dropout) : x);
  t = a_->forward(ctx, t);
  t = b_->forward(ctx, t);
  return scale(ctx, t, options_.scaling);
}

Tensor LoraLinear::add_dora(Context& ctx, const Tensor& x, const Tensor& result) {
  Tensor dropped, update;
  if (drops(ctx)) dropped = dropout(ctx, x, options_.dropout);
  update = dora_delta(ctx, drops(ctx) ? dropped : x, result);
  return add(ctx, result, update);
}

Tensor LoraLinear::dora_delta(Context& ctx, const Tensor& x, const Tensor& result) {
  const bool reuses = behaviour_.dora_reuses_base_result && !drops(ctx);
  return dora_->forward(ctx, x, dora_operands(), reuses ? result : Tensor());
}

Tensor LoraLinear::plain(Context& ctx, const Tensor& input) {
  Tensor result = base_->forward(ctx, input);
  const DType result_dtype = result.dtype();
  const Tensor weight_of_a = further_input(ctx, a_->weight().tensor);
  Tensor x = to(ctx, input, weight_of_a.dtype());
  if (dora_ && behaviour_.dora_is_variant) {
    result = add_dora(ctx, x, result);
  } else {
    if (dora_ && drops(ctx)) x = dropout(ctx, x, options_.dropout);
    const Tensor update = dora_ ? dora_delta(ctx, x, result) : delta(ctx, x);
    result = add(ctx, result, update);
  }
  return to(ctx, result, result_dtype);
}

/// peft/tuners/lora/bnb.py; beside 4-bit weights the result is cloned.
Tensor LoraLinear::on_quantized(Context& ctx, const Tensor& input) {
  Tensor result = base_->forward(ctx, input);
  if (base_->kind() == ModuleKind::linear_4bit) result = clone(ctx, result);
  const DType result_dtype = result.dtype();
  const bool converts = !ctx.autocast.enabled;
  Tensor x = converts ? to(ctx, input, further_input(ctx, a_->weight().tensor).dtype()) : input;
  if (dora_ && behaviour_.dora_is_variant) {
    result = add_dora(ctx, x, result);
    return converts ? to(ctx, result, result_dtype) : result;
  }
  if (dora_ && drops(ctx)) x = dropout(ctx, x, options_.dropout);
  Tensor output = dora_ ? dora_delta(ctx, x, result) : delta(ctx, x);
  if (converts) output = to(ctx, output, result_dtype);
  result = add(ctx, result, output);
  return result;
}

}  // namespace qlp

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
  const bool of_adapter = kind == ModuleKind::lora_matrix;
  if (bias) bias_ = &add_parameter("bias", of_adapter ? ParamRole::lora_bias : ParamRole::bias, {out});
}

void Linear::share(const TensorParallel& parallel) {
  parallel_ = parallel;
  if (parallel.style == TpStyle::none) return;
  for (const auto& parameter : own_parameters()) parameter->mesh = LayerMesh::tp, parameter->parts = parallel.ranks;
  if (!parallel.cuts_input()) return;
  weight_->cut_dim = 1;
  if (bias_) bias_->parts = 1;
}

void Linear::tie(Parameter& shared) {
  own_parameters().clear();
  share_parameter(shared);
  weight_ = &shared;
}

void Linear::untie() {
  const Parameter& shared = *weight_;
  drop_shared_parameters();
  weight_ = &add_parameter("weight", ParamRole::lm_head, shared.shape);
  weight_->trainable = shared.trainable, weight_->mesh = shared.mesh, weight_->parts = shared.parts,
  weight_->tensor = shared.tensor;
}

void Linear::train_copy() {
  weight_ = &add_parameter("modules_to_save.default.weight", ParamRole::modules_to_save, weight_->shape);
}

Tensor Linear::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) {
    const Tensor mine = enter(ctx, input, parallel_);
    const Tensor weight = tokens_ ? tokens_->merged(ctx, weight_->tensor) : weight_->tensor;
    if (!bias_ || !parallel_.cuts_input()) return leave(ctx, linear(ctx, mine, weight, tensor_of(bias_)), parallel_);
    if (ctx.grad_enabled) return leave(ctx, linear(ctx, mine, weight, bias_->tensor, parallel_.ranks), parallel_);
    return add(ctx, leave(ctx, linear(ctx, mine, weight), parallel_), bias_->tensor);  // once
  });
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

Linear8bit::Linear8bit(std::string name, std::int64_t in, std::int64_t out, bool bias, double threshold)
    : LinearModule(ModuleKind::linear_8bit, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::base_weight, {out, in})),
      threshold_(threshold) {
  weight_->quantize = true;
  if (bias) bias_ = &add_parameter("bias", ParamRole::bias, {out});
}

Tensor Linear8bit::forward(Context& ctx, const Tensor& x) {
  return call(ctx, x, [&](const Tensor& input) {
    Tensor out = linear_8bit(ctx, input, {weight_->quant.get()}, tensor_of(bias_), threshold_);
    set_data(weight_->tensor, weight_->quant->whole);  // whatever a runtime had gathered
    return out;
  });
}

}  // namespace qlp

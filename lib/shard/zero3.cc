#include "shard/zero3.h"

#include <utility>

#include "autograd/pointwise.h"
#include "nn/initial_values.h"
#include "optim/weight_decay.h"
#include "shard/zero3_gather.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

void Zero3Runtime::cut(Context& ctx, Parameter& parameter) {
  params_.push_back(std::make_unique<Zero3Param>(ctx, parameter, params_.size(), options_));
  of_parameter_.emplace(&parameter, params_.back().get());
}

/// In the dtype of DeepSpeed's configuration.
void Zero3Runtime::make(Context& ctx, Parameter& parameter, DType dtype) {
  parameter.tensor = empty(ctx, parameter.shape, options_.module_dtype.value_or(dtype), Op::parameter);
  cut(ctx, parameter);
}

void Zero3Runtime::make_replaced(Context& ctx, const Parameter& parameter, DType dtype) {
  Parameter stand_in = {.name = parameter.name, .role = parameter.role, .shape = parameter.shape};
  stand_in.tensor = empty(ctx, parameter.shape, options_.module_dtype.value_or(dtype), Op::parameter);
  replaced_.push_back(Zero3Param(ctx, stand_in, params_.size(), options_).partition());
}

void Zero3Runtime::fill(Context& ctx, Parameter& parameter) {
  Zero3Param& param = *of_parameter_.at(&parameter);
  param.all_gather(ctx);
  if (options_.rank == 0) fill_initial(ctx, parameter, param.tensor());
  broadcast(ctx, options_.group(), param.tensor());
  param.partition_whole(ctx);
  param.free(ctx);
}

void Zero3Runtime::prepare(Context& ctx, CausalLm& model) {
  const bool zero_init = !params_.empty();
  replaced_.clear();  // see_memory_usage collects garbage
  if (zero_init && options_.keeps_first_frequencies)
    for (const ModuleBuffer& buffer : model.buffers())
      if (!buffer.in_model_dtype) first_frequencies_.push_back(*buffer.tensor);
  if (options_.module_dtype) cast_module(ctx, model, *options_.module_dtype);
  // What the engine puts off until now. NOLINTNEXTLINE(bugprone-parent-virtual-call)
  ShardingRuntime::place_model(ctx, model);
  if (options_.has_kernel_flag) make_kernel_flag(ctx);
  if (options_.makes_first_sums) make_first_sums(ctx, model);
  std::vector<Zero3Param*> all;
  std::vector<std::vector<Zero3Param*>> groups(2);  // with weight decay, without
  for (Parameter* parameter : model.parameters()) {
    if (!of_parameter_.contains(parameter)) cut(ctx, *parameter);
    all.push_back(of_parameter_.at(parameter));
    const std::size_t group = zero_group(options_.one_group, has_weight_decay(*parameter, options_.norms_decay));
    if (parameter->trainable) groups[group].push_back(all.back());
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  coordinator_ = std::make_unique<Zero3Coordinator>(model, all, options_);
  hooks_ = std::make_unique<Zero3Hooks>(
      *coordinator_, [this](Context& c, const Module& leaf) { optimizer_->gradients().leave(c, leaf); });
  hooks_->replaces_linear = below_leaves_.replaces_linear = zero_init && options_.memory_efficient_linear;
  set_hooks(model, hooks_.get());
  optimizer_ = std::make_unique<Zero3Optimizer>(ctx, groups, *coordinator_, all, options_);
}

/// _register_deepspeed_module
void Zero3Runtime::set_hooks(Module& module, ForwardHooks* hooks) {
  module.set_hooks(hooks);
  if (is_leaf_module(module)) hooks = &below_leaves_;
  for (Module* child : module.children()) set_hooks(*child, hooks);
}

Tensor Zero3Runtime::scaled(Context& ctx, const Tensor& loss) const {
  return scale(ctx, loss, optimizer_->loss_scale());
}

void Zero3Runtime::begin_micro_step(Context& ctx, bool sync) {
  ZeroEngine::begin_micro_step(ctx, sync);
  optimizer_->gradients().set_boundary(sync);
}

void Zero3Runtime::zero_grad(Context& ctx, const std::vector<Tensor>& parameters) {
  ShardingRuntime::zero_grad(ctx, parameters);
  optimizer_->drop_unwaited();
}

/// _zero3_consolidated_16bit_state_dict: module by module the parameters are gathered, copied to the host by the first
/// rank, broadcast by it and cut again; what persists is gathered once all are cut.
StateDict Zero3Runtime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  coordinator_->release_all(ctx);
  StateDict out;
  model.visit([&](Module& module) {
    if (is_leaf_module(module)) return;  // it has none of its own
    const std::vector<Zero3Param*>& params = coordinator_->params_of(&module);
    if (params.empty()) return;
    if (params.size() == 1) params.front()->all_gather(ctx);
    if (params.size() > 1) gather_blocking(ctx, params, options_);
    if (keeps)
      for (const auto& own : module.own_parameters()) out.entries.push_back({own.get(), to_host(ctx, own->tensor)});
    for (Zero3Param* param : params) {
      broadcast(ctx, options_.group(), param->tensor());
      param->free(ctx);
    }
  });
  optimizer_->gather_persistent(ctx);
  return out;
}

/// DeepSpeedEngine.save_checkpoint (runtime/engine.py; zero/stage3.py, _rigid_state_dict): of the module nothing is
/// there to be written, as all of it is cut, but frozen parts are copied unless they are left out.
void Zero3Runtime::save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                       const TrainingStateRequest& request) {
  coordinator_->release_all(ctx);
  {
    std::vector<Tensor> frozen;
    for (const Parameter* parameter : model.parameters())
      if (!parameter->trainable && !request.adapter_only)
        frozen.push_back(to_host(ctx, of_parameter_.at(parameter)->partition()));
  }
  for (const OptimizerEntry& entry : optimizer.state()) write_tensors(ctx, entry.state);
  for (const TrainedTensor& master : optimizer_->trained()) write_tensors(ctx, {master.tensor});
  for (const auto& [parameter, param] : of_parameter_)
    if (param->trainable()) param->drop_secondary();  // invalidate_secondary_tensor
  optimizer_->gather_persistent(ctx);
}

/// The modules around the decoder have hooks, too: the model for causal language modelling, or those that PEFT puts
/// around it, which call it without its hooks. The innermost of them counts as the one that reads the head's weight;
/// PEFT's pass on the functions for the backward pass that DeepSpeed has given the model, which knows nothing of that.
CausalLmOutput Zero3Runtime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                     const Tensor& num_items, const RunOptions& options) {
  coordinator_->reset_step(ctx);
  hooks_->in_forward = true;
  for (int i = 1; i < options_.outer_modules; ++i) coordinator_->fetch(ctx, nullptr);
  coordinator_->fetch(ctx, &model);
  CausalLmOutput output = model.forward(ctx, ids, labels, num_items, options);
  coordinator_->release(ctx, model);
  const Module* const behind = options_.outer_modules == 1 ? &model : nullptr;
  for (int i = 0; i < options_.outer_modules; ++i)
    for (Tensor* tensor : {&output.loss, &output.logits})
      if (tensor->defined()) *tensor = hooks_->before_backward(ctx, behind, std::move(*tensor));
  hooks_->in_forward = false;
  divide_gradients(output, options.loss_weight);
  return output;
}

}  // namespace qlp

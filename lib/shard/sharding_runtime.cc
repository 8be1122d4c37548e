#include "shard/sharding_runtime.h"

#include "tensor/factories.h"

namespace qlp {

void ShardingRuntime::place_model(Context& ctx, CausalLm& model) {
  for (Parameter* parameter : model.parameters()) parameter->tensor = to_device(ctx, parameter->tensor);
  move_buffers(ctx, model);
}

void move_buffers(Context& ctx, Module& module) {
  module.visit([&](Module& below) {
    for (const ModuleBuffer& buffer : below.own_buffers())
      if (buffer.tensor->defined()) *buffer.tensor = to_device(ctx, *buffer.tensor);
  });
}

std::vector<TrainedTensor> ShardingRuntime::trained(CausalLm& model) {
  std::vector<TrainedTensor> out;
  for (const Parameter* parameter : model.parameters())
    if (parameter->trainable) out.push_back({parameter, parameter->tensor});
  return out;
}

std::vector<Shape> ShardingRuntime::frozen(CausalLm& model) {
  std::vector<Shape> out;
  for (const Parameter* parameter : model.parameters())
    if (!parameter->trainable) out.push_back(parameter->tensor.shape());
  return out;
}

CausalLmOutput ShardingRuntime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                        const Tensor& num_items, const RunOptions& options) {
  return model.forward(ctx, ids, labels, num_items, options);
}

Tensor ShardingRuntime::clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) {
  return qlp::clip_grad_norm(ctx, parameters, max_norm);
}

/// The tensors themselves; only the rank that writes asks for them.
StateDict ShardingRuntime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  StateDict out;
  if (!keeps) return out;
  for (const Parameter* parameter : model.parameters()) out.entries.push_back({parameter, parameter->tensor});
  const Scoped category(ctx.category, Category::workspace);
  out.clones = cloned_nested_codes(ctx, model);
  return out;
}

void ShardingRuntime::save_training_state(Context& ctx, CausalLm&, Optimizer& optimizer,
                                          const TrainingStateRequest& request) {
  if (!request.first) return;
  for (const OptimizerEntry& entry : optimizer.state()) write_tensors(ctx, entry.state);
}

void ShardingRuntime::zero_grad(Context&, const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) set_grad(parameter, Tensor());
}

}  // namespace qlp

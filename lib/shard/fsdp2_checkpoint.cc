// What accelerate saves of an FSDP2 model for training to go on (accelerate/utils/fsdp_utils.py, save_fsdp_model and
// save_fsdp_optimizer, 1.15; torch/distributed/checkpoint/state_dict.py and filesystem.py, 2.14).
#include <unordered_map>

#include "autograd/node.h"
#include "shard/fsdp2_runtime.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// _offload_state_dict_to_cpu; what is offloaded is there.
Tensor on_host(Context& ctx, const Tensor& tensor) { return tensor.on_host() ? tensor : to_host(ctx, tensor); }

/// _init_optim_state: an optimizer that keeps nothing steps once more, on gradients of zeros, to make sure of it.
void step_on_zeros(Context& ctx, Optimizer& optimizer) {
  std::vector<Tensor> parameters;
  for (const ParameterGroup& group : optimizer.groups())
    parameters.insert(parameters.end(), group.begin(), group.end());
  {
    const Scoped category(ctx.category, Category::gradients);
    for (const Tensor& parameter : parameters) {
      set_grad(parameter, empty_like(ctx, parameter, Op::zeros));
      fill(ctx, grad_of(parameter), 0);
    }
  }
  const double lr = optimizer.lr();
  optimizer.set_lr(0);
  optimizer.step(ctx);
  optimizer.set_lr(lr);
  for (const Tensor& parameter : parameters) set_grad(parameter, Tensor());
}

}  // namespace

void Fsdp2Runtime::save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                       const TrainingStateRequest& request) {
  fully_shard_.reshard(ctx);
  if (request.sharded)
    save_shards(ctx, model, request.adapter_only);
  else if (request.adapter_only)
    save_trained(ctx, model, request.first);
  else
    state_dict(ctx, model, request.first);
  save_optimizer(ctx, model, optimizer, request);
}

/// Every rank writes its part, which goes to the host as a whole first, but for adapters: PEFT gives those as they are.
void Fsdp2Runtime::save_shards(Context& ctx, CausalLm& model, bool adapter_only) const {
  const std::vector<Tensor> clones = clones_of_whole(ctx, model);
  std::vector<Tensor> state_dict;
  for (const Parameter* parameter : model.parameters()) {
    if (!adapter_only)
      state_dict.push_back(on_host(ctx, parameter->tensor));
    else if (parameter->trainable)
      state_dict.push_back(parameter->tensor);
  }
  write_chunks(ctx, state_dict);
}

/// get_model_state_dict with ignore_frozen_params: what is frozen is taken out under the names of named_parameters(),
/// which knows a tied weight by one of its two.
void Fsdp2Runtime::save_trained(Context& ctx, CausalLm& model, bool keeps) const {
  std::vector<const Parameter*> names;
  for (const Parameter* parameter : model.parameters())
    if (parameter->trainable) names.push_back(parameter);
  if (const Parameter* table = tied_table(model)) names.push_back(table);
  std::vector<Tensor> state_dict;
  for (const Parameter* parameter : names) {
    const Tensor whole = whole_of(ctx, *parameter);
    if (keeps) state_dict.push_back(on_host(ctx, whole));
  }
}

/// get_optimizer_state_dict: state that lies as its parameter does is a DTensor too.
void Fsdp2Runtime::save_optimizer(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                  const TrainingStateRequest& request) const {
  if (optimizer.state().empty()) step_on_zeros(ctx, optimizer);
  std::unordered_map<const TensorImpl*, const Fsdp2Param*> shards;
  for (const Parameter* parameter : model.parameters())
    if (const Fsdp2Param* shard = fully_shard_.shard_of(*parameter)) shards.emplace(parameter->tensor.impl(), shard);
  std::vector<Tensor> state_dict;
  for (const OptimizerEntry& entry : optimizer.state()) {
    const auto shard = shards.find(entry.parameter.impl());
    for (const Tensor& state : entry.state) {
      const bool cut = shard != shards.end() && state.shape() == entry.parameter.shape() && state.shape().rank() > 0;
      const Tensor whole = cut && !request.sharded ? shard->second->gathered(ctx, state) : state;
      if (request.sharded || request.first) state_dict.push_back(on_host(ctx, whole));
    }
  }
}

}  // namespace qlp

#include "shard/zero.h"

#include <utility>

#include "optim/weight_decay.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// The groups of transformers' optimizer, or the one of DeepSpeed's own; DeepSpeed removes empty ones.
std::vector<std::vector<Parameter*>> groups_of(CausalLm& model, const ZeroOptions& options) {
  std::vector<std::vector<Parameter*>> groups(2);
  for (Parameter* parameter : model.parameters())
    if (parameter->trainable)
      groups[options.one_group || has_weight_decay(*parameter, options.norms_decay) ? 0 : 1].push_back(parameter);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

}  // namespace

void ZeroRuntime::prepare(Context& ctx, CausalLm& model) {
  if (options_.module_dtype) cast_module(ctx, model, *options_.module_dtype);
  // What the engine puts off until now. NOLINTNEXTLINE(bugprone-parent-virtual-call)
  ShardingRuntime::place_model(ctx, model);
  for (const Parameter* parameter : model.parameters()) broadcast(ctx, options_.group(), parameter->tensor);
  if (options_.has_kernel_flag) make_kernel_flag(ctx);
  optimizer_ = std::make_unique<ZeroOptimizer>(ctx, groups_of(model, options_), options_);
}

/// clone_tensors_for_torch_save (deepspeed/checkpoint/utils.py): every rank copies the whole model to the host, frozen
/// parameters and quant states too; the first one writes.
StateDict ZeroRuntime::state_dict(Context& ctx, CausalLm& model, bool /*keeps*/) {
  const StateDict on_device = ShardingRuntime::state_dict(ctx, model, true);
  StateDict out;
  for (const StateDictEntry& entry : on_device.entries) {
    if (const auto& quant = entry.parameter->quant)
      for (const Tensor& statistics : {quant->absmax, quant->code, quant->nested_absmax, quant->nested_code})
        if (statistics.defined()) out.clones.push_back(to_host(ctx, statistics));
    out.entries.push_back({entry.parameter, to_host(ctx, entry.tensor)});
  }
  return out;
}

/// DeepSpeedEngine.save_checkpoint (runtime/engine.py; zero/stage_1_and_2.py, state_dict): the first rank writes what
/// is trained, which are views of flat buffers that are written as a whole, and every rank its part of the optimizer.
void ZeroRuntime::save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                      const TrainingStateRequest& request) {
  {
    const StateDict module = ShardingRuntime::state_dict(ctx, model, true);
    for (const auto& group : optimizer_->groups())
      if (request.first) write_tensors(ctx, {group->flat()});
  }
  for (const OptimizerEntry& entry : optimizer.state()) write_tensors(ctx, entry.state);
  for (const auto& group : optimizer_->groups()) write_tensors(ctx, {group->master()});
}

void ZeroRuntime::begin_micro_step(Context& ctx, bool sync) {
  ZeroEngine::begin_micro_step(ctx, sync);
  optimizer_->gradients().set_boundary(sync);
}

void ZeroRuntime::finish_backward(Context& ctx) { optimizer_->gradients().finish_backward(ctx); }

}  // namespace qlp

#include "shard/zero.h"

#include <utility>

#include "autograd/pointwise.h"
#include "optim/weight_decay.h"

namespace qlp {
namespace {

/// The groups of transformers' optimizer, or the one of DeepSpeed's own; DeepSpeed removes empty ones.
std::vector<std::vector<Parameter*>> groups_of(CausalLm& model, const ZeroOptions& options) {
  std::vector<std::vector<Parameter*>> groups(2);
  for (Parameter* parameter : model.parameters())
    if (parameter->trainable)
      groups[zero_group(options.one_group, has_weight_decay(*parameter, options.norms_decay))].push_back(parameter);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

}  // namespace

void ZeroRuntime::prepare(Context& ctx, CausalLm& model) {
  prepare_engine(ctx, model, options_);
  optimizer_ = std::make_unique<ZeroOptimizer>(ctx, groups_of(model, options_), options_);
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

Tensor ZeroRuntime::scaled(Context& ctx, const Tensor& loss) const {
  return scale(ctx, loss, optimizer_->loss_scale());
}

void ZeroRuntime::begin_micro_step(Context& ctx, bool sync) {
  ZeroEngine::begin_micro_step(ctx, sync);
  optimizer_->gradients().set_boundary(sync);
}

void ZeroRuntime::finish_backward(Context& ctx) { optimizer_->gradients().finish_backward(ctx); }

}  // namespace qlp

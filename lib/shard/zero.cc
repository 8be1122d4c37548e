#include "shard/zero.h"

#include <string>
#include <utility>

#include "autograd/pointwise.h"
#include "base/refusal.h"
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

/// torchao's OptimState8bit, aten.slice (optim/subclass_8bit.py, 0.12 to 0.18), by which DeepSpeed gives each parameter
/// of the first group its part of the state (utils/tensor_fragment.py).
Diagnostics ZeroRuntime::check(CausalLm& model) const {
  constexpr std::int64_t kLeastInBlocks = 4096;  // less, or what is not whole blocks, has state of other tensors
  const auto groups = groups_of(model, options_);
  if (options_.state_block == 0 || groups.empty()) return {};
  const ZeroLayout layout = ZeroGroup::layout_of(groups.front(), options_);
  if (layout.partition_size() < kLeastInBlocks || layout.partition_size() % options_.state_block != 0) return {};
  for (std::size_t i = 0; i < groups.front().size(); ++i)
    for (const ZeroLayout::Slice& slice : layout.slices(i)) {
      const std::int64_t start = layout.start_in(slice.rank, i);
      if (start % options_.state_block == 0 && (start + slice.numel) % options_.state_block == 0) continue;
      return {refusal("zero-state-blocks",
                      "DeepSpeed slices the optimizer's state by parameters, and ends between blocks of " +
                          std::to_string(options_.state_block) +
                          " elements that torchao has a scale for: 'Make sure start and end align with block boundary'",
                      "training.optimizer", "take adamw_bnb_8bit, or a plan of stage 3")};
    }
  return {};
}

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

#include "shard/zero.h"

#include <utility>

#include "optim/weight_decay.h"
#include "tensor/collective.h"

namespace qlp {
namespace {

/// The groups of transformers' optimizer; DeepSpeed removes empty ones.
std::vector<std::vector<Parameter*>> groups_of(CausalLm& model, bool norms_decay) {
  std::vector<std::vector<Parameter*>> groups(2);
  for (Parameter* parameter : model.parameters())
    if (parameter->trainable) groups[has_weight_decay(*parameter, norms_decay) ? 0 : 1].push_back(parameter);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

}  // namespace

void ZeroRuntime::prepare(Context& ctx, CausalLm& model) {
  if (options_.module_dtype) cast_module(ctx, model, *options_.module_dtype);
  ShardingRuntime::place_model(ctx, model);
  for (const Parameter* parameter : model.parameters())
    communicate(ctx, Collective::broadcast, options_.group(), parameter->tensor);
  optimizer_ = std::make_unique<ZeroOptimizer>(ctx, groups_of(model, options_.norms_decay), options_);
}

void ZeroRuntime::begin_micro_step(Context& ctx, bool sync) {
  ZeroEngine::begin_micro_step(ctx, sync);
  optimizer_->gradients().set_boundary(sync);
}

void ZeroRuntime::finish_backward(Context& ctx) { optimizer_->gradients().finish_backward(ctx); }

}  // namespace qlp

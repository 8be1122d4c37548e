#include "optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

Tensor state_like(Context& ctx, const Tensor& parameter) { return empty_like(ctx, parameter, Op::optimizer_state); }

}  // namespace

TorchOptimizer::TorchOptimizer(OptimizerKind kind, std::vector<ParameterGroup> groups)
    : kind_(kind), groups_(std::move(groups)) {
  for (const auto& group : groups_) states_.emplace_back(group.size());
}

void TorchOptimizer::init_state(Context& ctx, const Tensor& parameter, State& state) const {
  if (state.exp_avg.defined()) return;
  const Scoped category(ctx.category, Category::optimizer_state);
  if (kind_ == OptimizerKind::adamw_fused) state.step = empty(ctx, {}, DType::float32, Op::optimizer_state);
  state.exp_avg = state_like(ctx, parameter);
  state.exp_avg_sq = state_like(ctx, parameter);
}

void TorchOptimizer::step(Context& ctx) {
  if (kind_ == OptimizerKind::sgd) return;  // without momentum: in place, nothing kept
  const Scoped category(ctx.category, Category::workspace);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<const State*> updated;
    for (std::size_t i = 0; i < groups_[g].size(); ++i) {
      if (!grad_of(groups_[g][i]).defined()) continue;
      init_state(ctx, groups_[g][i], states_[g][i]);
      updated.push_back(&states_[g][i]);
    }
    if (kind_ == OptimizerKind::adamw_foreach) foreach_update(ctx, updated);
    if (kind_ == OptimizerKind::adamw_forloop) forloop_update(ctx, updated);
  }
}

/// adam.py, _multi_tensor_adam: by dtype, the list of sqrt(exp_avg_sq) at once; all else is in place. The list of one
/// dtype is still named while that of the next is built. The hash map that PyTorch groups in gives the dtype that it
/// met last first (_group_tensors_by_device_and_dtype).
void TorchOptimizer::foreach_update(Context& ctx, const std::vector<const State*>& states) {
  std::vector<DType> dtypes;
  for (const State* state : states)
    if (std::find(dtypes.begin(), dtypes.end(), state->exp_avg_sq.dtype()) == dtypes.end())
      dtypes.insert(dtypes.begin(), state->exp_avg_sq.dtype());
  std::vector<Tensor> roots;
  for (const DType dtype : dtypes) {
    std::vector<Tensor> next;
    for (const State* state : states)
      if (state->exp_avg_sq.dtype() == dtype) next.push_back(empty_like(ctx, state->exp_avg_sq, Op::foreach_sqrt));
    roots = std::move(next);
  }
}

/// adam.py, _single_tensor_adam: sqrt, then its quotient, beside the quotient of the parameter before.
void TorchOptimizer::forloop_update(Context& ctx, const std::vector<const State*>& states) {
  Tensor denom;
  for (const State* state : states) {
    const Tensor root = empty_like(ctx, state->exp_avg_sq, Op::foreach_sqrt);
    denom = empty_like(ctx, root, Op::div);
  }
}

}  // namespace qlp

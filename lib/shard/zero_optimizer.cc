#include "shard/zero_optimizer.h"

#include <cmath>
#include <utility>

#include "autograd/node.h"
#include "shard/zero_norm.h"
#include "tensor/arithmetic.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

ZeroOptimizer::ZeroOptimizer(Context& ctx, std::vector<std::vector<Parameter*>> groups, const ZeroOptions& options)
    : options_(options) {
  for (auto& group : groups) groups_.push_back(std::make_unique<ZeroGroup>(ctx, std::move(group), options_));
  gradients_ = std::make_unique<ZeroGradients>(ctx, groups_, options_);
  // initialize_optimizer_states: gradients for all partitions, which stay on the host only.
  const Scoped category(ctx.category, Category::gradients);
  std::vector<Tensor> passing;
  for (const auto& group : groups_) {
    if (options_.offload_optimizer) {
      group->host_gradient = offloaded(ctx, group->layout().partition_size(), DType::float32, options_);
      fill(ctx, group->host_gradient, 0);
    } else {
      passing.push_back(empty_like(ctx, group->master(), Op::zeros));
    }
  }
}

std::vector<TrainedTensor> ZeroOptimizer::trained() const {
  std::vector<TrainedTensor> out;
  for (const auto& group : groups_) out.push_back({group->parameters().front(), group->master(), true});
  return out;
}

void ZeroOptimizer::step(Context& ctx, Optimizer& optimizer) {
  const Scoped category(ctx.category, Category::workspace);
  if (options_.checks_overflow) check_overflow(ctx);
  const Tensor scaled_norm = norm(ctx);
  const Tensor norm_before = global_norm_;  // the engine's
  if (scaled_norm.defined()) {
    global_norm_ = empty_like(ctx, scaled_norm, Op::div);
    copy_into(ctx, global_norm_, scaled_norm);
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) update(ctx, i, optimizer);
  for (const auto& group : groups_) group->norms.clear();
  for (const auto& group : groups_) all_gather(ctx, options_.group(), group->flat(), group->partition(options_.rank));
}

/// has_overflow: a count of bad gradients, which the host waits for.
void ZeroOptimizer::check_overflow(Context& ctx) const {
  Tensor flag;
  if (!options_.offload_optimizer) {
    const Tensor count = empty(ctx, {1}, DType::float32, Op::zeros);
    for (const auto& group : groups_)
      for (const Tensor& grad : group->averaged) const Tensor found = inf_or_nan(ctx, grad);
    flag = empty(ctx, {1}, DType::boolean, Op::to_copy);
  }
  flag = empty(ctx, {1}, DType::uint8, Op::to_copy);
  communicate(ctx, Collective::all_reduce, options_.group(), size_of(DType::uint8));
  ctx.device.synchronize();
}

/// scaled_global_norm
Tensor ZeroOptimizer::norm(Context& ctx) {
  if (options_.offload_optimizer) {
    host_norm_ = offloaded_norm(ctx);
    return {};
  }
  std::vector<Tensor> group_norms;
  for (const auto& group : groups_) {
    std::vector<Tensor> norms;
    for (std::size_t i = 0; i < group->members().size(); ++i) norms.push_back(double_norm(ctx, group->averaged[i]));
    group_norms.push_back(join_norms(ctx, norms, options_.group()));
  }
  return global_norm(ctx, group_norms);
}

/// complete_grad_norm_calculation_for_cpu_offload: the norms of gradients are there, and are summed on the host.
double ZeroOptimizer::offloaded_norm(Context& ctx) const {
  double all = 0;
  for (const auto& group : groups_) {
    double squares = 0;
    for (const Tensor& norm : group->norms) squares += std::pow(item(ctx, norm), 2);
    {
      const Tensor total = empty(ctx, {1}, DType::float32, Op::all_reduce);
      fill(ctx, total, squares);
      all_reduce(ctx, options_.group(), total, ReduceOp::sum);
      all += item(ctx, total);
    }
    ctx.device.synchronize();
  }
  return std::sqrt(all);
}

void ZeroOptimizer::update(Context& ctx, std::size_t index, Optimizer& optimizer) {
  ZeroGroup& group = *groups_[index];
  if (options_.offload_optimizer) {
    clip_by_number(ctx, group.host_gradient, host_norm_, options_.gradient_clipping);
    set_grad(group.master(), group.host_gradient);
  } else {
    set_grad(group.master(), join_gradients(ctx, group));
    group.averaged.clear();
    unscale_and_clip(ctx, grad_of(group.master()), global_norm_, options_.gradient_clipping);
  }
  optimizer.step(ctx);
  if (!group.master().on_host()) {
    touch(ctx, grad_of(group.master()));
    for (int i = 0; i < 2; ++i) touch(ctx, group.master());  // read and written
  }
  set_grad(group.master(), Tensor());
  copy_into(ctx, group.partition(options_.rank), group.master());
  if (options_.offload_optimizer)
    copy_to_device(ctx, bytes_of(Shape{group.layout().partition_size()}, group.flat().dtype()).count());
}

/// The gradients of the partition side by side, in float32. One alone is only viewed.
Tensor ZeroOptimizer::join_gradients(Context& ctx, ZeroGroup& group) const {
  const Scoped category(ctx.category, Category::gradients);
  const Shape shape{group.layout().partition_size()};
  DType dtype = group.averaged.front().dtype();
  for (const Tensor& grad : group.averaged)
    if (grad.dtype() != dtype) dtype = promote(group.averaged.front(), grad);
  const bool alone = group.averaged.size() == 1;
  Tensor joined = alone ? group.averaged.front().view(shape) : empty(ctx, shape, dtype, Op::cat);
  if (!alone && ctx.kernels(joined)) {
    std::int64_t start = 0;
    for (const Tensor& grad : group.averaged) {
      copy_elements(ctx, joined.flat(start, grad.numel()), grad);
      start += grad.numel();
    }
  }
  if (dtype == DType::float32) return joined;
  Tensor wide = empty(ctx, shape, DType::float32, Op::to_copy);
  copy_into(ctx, wide, joined);
  return wide;
}

}  // namespace qlp

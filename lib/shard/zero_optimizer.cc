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
    : options_(options), loss_scale_(options.loss_scale) {
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
  const double scale = loss_scale_.value();
  const bool overflow = options_.checks_overflow && has_overflow(ctx);
  loss_scale_.update(overflow);
  if (overflow) return drop_gradients();
  const ScaledNorm scaled_norm = norm(ctx);
  const Tensor norm_before = global_norm_;  // the engine's
  if (scaled_norm.on_device.defined()) {
    global_norm_ = empty_like(ctx, scaled_norm.on_device, Op::div);
    compute(ctx, Unary::mul, global_norm_, scaled_norm.on_device, 1 / scale);
  }
  host_norm_ = scaled_norm.on_host / scale;
  for (std::size_t i = 0; i < groups_.size(); ++i) update(ctx, i, scaled_norm, optimizer);
  for (const auto& group : groups_) group->norms.clear();
  gradients_->forget_overflow();
  for (const auto& group : groups_) all_gather(ctx, options_.group(), group->flat(), group->partition(options_.rank));
}

/// A count of bad gradients, which the host waits for.
bool ZeroOptimizer::has_overflow(Context& ctx) const {
  Tensor any;
  if (!options_.offload_optimizer) {
    const Tensor count = empty(ctx, {1}, DType::float32, Op::zeros);
    fill(ctx, count, 0);
    for (const auto& group : groups_)
      for (const Tensor& grad : group->averaged) {
        const Tensor found = inf_or_nan(ctx, grad);
        compute(ctx, Binary::add, count, count, found);
      }
    any = empty(ctx, {1}, DType::boolean, Op::to_copy);
    copy_into(ctx, any, count);
  }
  const Tensor flag = empty(ctx, {1}, DType::uint8, Op::to_copy);
  if (any.defined())
    copy_into(ctx, flag, any);
  else
    fill(ctx, flag, gradients_->overflowed() ? 1 : 0);
  any.reset();
  all_reduce(ctx, options_.group(), flag, ReduceOp::max);
  ctx.device.synchronize();
  return item(ctx, flag) != 0;
}

/// The step is left out.
void ZeroOptimizer::drop_gradients() {
  for (const auto& group : groups_) group->averaged.clear(), group->accumulated.clear(), group->norms.clear();
  gradients_->forget_overflow();
}

/// scaled_global_norm
ZeroOptimizer::ScaledNorm ZeroOptimizer::norm(Context& ctx) const {
  if (options_.offload_optimizer) return {.on_device = {}, .on_host = offloaded_norm(ctx)};
  std::vector<Tensor> group_norms;
  for (const auto& group : groups_) {
    std::vector<Tensor> norms;
    for (std::size_t i = 0; i < group->members().size(); ++i) norms.push_back(double_norm(ctx, group->averaged[i]));
    group_norms.push_back(join_norms(ctx, norms, options_.group()));
  }
  return {.on_device = global_norm(ctx, group_norms)};
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

void ZeroOptimizer::update(Context& ctx, std::size_t index, const ScaledNorm& norm, Optimizer& optimizer) {
  ZeroGroup& group = *groups_[index];
  const ZeroClipping clipping{options_.gradient_clipping, loss_scale_.value()};
  if (options_.offload_optimizer) {
    unscale_and_clip_by_number(ctx, group.host_gradient, norm.on_host, clipping);
    set_grad(group.master(), group.host_gradient);
  } else {
    set_grad(group.master(), join_gradients(ctx, group));
    group.averaged.clear();
    unscale_and_clip(ctx, grad_of(group.master()), norm.on_device, clipping);
  }
  optimizer.step(ctx);
  if (!std::exchange(linked_, true)) link_state(ctx, optimizer);
  if (!group.master().on_host()) {
    touch(ctx, grad_of(group.master()));
    for (int i = 0; i < 2; ++i) touch(ctx, group.master());  // read and written
  }
  set_grad(group.master(), Tensor());
  copy_into(ctx, group.partition(options_.rank), group.master());
  if (options_.offload_optimizer)
    copy_to_device(ctx, bytes_of(Shape{group.layout().partition_size()}, group.flat().dtype()).count());
}

/// _lazy_init_hp_params_optimizer_state: a slice for each parameter, of the state that is there when the first group
/// has been updated.
void ZeroOptimizer::link_state(Context& ctx, const Optimizer& optimizer) {
  const ZeroGroup& group = *groups_.front();
  for (std::size_t i = 0; i < group.members().size(); ++i)
    for (Tensor& kept : optimizer.slice_state(ctx, group.master())) fragments_.push_back(std::move(kept));
}

/// The gradients of the partition side by side, in the dtype of its master weights. One alone is only viewed.
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
  if (dtype == options_.master_dtype) return joined;
  Tensor wide = empty(ctx, shape, options_.master_dtype, Op::to_copy);
  copy_into(ctx, wide, joined);
  return wide;
}

}  // namespace qlp

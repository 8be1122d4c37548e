#include "shard/zero3_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/node.h"
#include "optim/clip_grad_norm.h"
#include "shard/zero3_norm.h"
#include "shard/zero_norm.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

namespace qlp {
namespace {

std::int64_t partition_numel(const std::vector<Zero3Param*>& params) {
  std::int64_t numel = 0;
  for (const Zero3Param* param : params) numel += param->partition_numel();
  return numel;
}

/// A copy between places of values that are converted on the way, which the host does.
void move(Context& ctx, const Shape& part, bool from_host, bool to_host) {
  if (from_host && !to_host) copy_to_device(ctx, bytes_of(part, DType::float32).count());
  if (!from_host && to_host) copy_to_host(ctx, bytes_of(part, DType::float32).count());
}

/// Gives the parts of `params` their places in a flat buffer, from `start` on; gives where the next ones begin.
std::int64_t put_into(const Tensor& flat, std::int64_t start, const std::vector<Zero3Param*>& params) {
  for (Zero3Param* param : params) {
    param->set_partition(flat.flat(start, param->partition_numel()));
    start += param->partition_numel();
  }
  return start;
}

/// Behind each other, in the order of the groups.
void copy_partitions(Context& ctx, const Tensor& flat, const std::vector<std::vector<Zero3Param*>>& groups) {
  if (!ctx.kernels(flat)) return;
  std::int64_t start = 0;
  for (const auto& group : groups)
    for (const Zero3Param* param : group) {
      copy_into(ctx, flat.flat(start, param->partition_numel()), param->partition());
      start += param->partition_numel();
    }
}

/// mark_persistent_parameters
std::vector<Zero3Param*> mark_persistent(const std::vector<Zero3Param*>& all, const Zero3Options& options) {
  std::vector<Zero3Param*> persistent;
  std::int64_t total = 0;
  for (Zero3Param* param : all) {
    if (param->numel() > options.model_persistence_threshold - total) continue;
    if (param->numel() > options.param_persistence_threshold) continue;
    param->persists = true;
    persistent.push_back(param);
    total += param->numel();
  }
  return persistent;
}

}  // namespace

Zero3Optimizer::Zero3Optimizer(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups,
                               Zero3Coordinator& coordinator, const std::vector<Zero3Param*>& all,
                               const Zero3Options& options)
    : options_(options),
      coordinator_(coordinator),
      persistent_(mark_persistent(all, options)),
      dtype_(groups.front().front()->dtype()),
      loss_scale_(options.loss_scale) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  {
    const Scoped category(ctx.category, Category::workspace);
    const Scoped place(ctx.place, options.master_place());
    nan_tracker_ = empty(ctx, {1}, DType::boolean, Op::zeros);
    fill(ctx, nan_tracker_, 0);
  }
  for (const auto& group : groups) cut_into_sub_groups(group);
  flatten_partitions(ctx, groups);
  make_masters(ctx);
  init_gradients(ctx);
  gradients_ = std::make_unique<Zero3Gradients>(ctx, groups_, host_gradients_, options);
}

std::vector<TrainedTensor> Zero3Optimizer::trained() const {
  std::vector<TrainedTensor> out;
  for (std::size_t i = 0; i < groups_.size(); ++i) out.push_back({&groups_[i].front()->parameter(), masters_[i], true});
  return out;
}

/// _create_fp16_sub_groups
void Zero3Optimizer::cut_into_sub_groups(const std::vector<Zero3Param*>& group) {
  if (options_.sub_group_size >= partition_numel(group)) {
    groups_.push_back(group);
    return;
  }
  std::vector<Zero3Param*> sub_group;
  for (Zero3Param* param : group) {
    sub_group.push_back(param);
    if (partition_numel(sub_group) < options_.sub_group_size && param != group.back()) continue;
    groups_.push_back(std::exchange(sub_group, {}));
  }
}

/// defragment: into one buffer by way of the host, so that nothing is held twice. Parts on the host: into a pinned
/// buffer for each of the optimizer's groups (_create_param_groups_fp16_flat_cpu_memory).
void Zero3Optimizer::flatten_partitions(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups) const {
  const Scoped category(ctx.category, groups.front().front()->category());
  if (options_.offload_param) {
    const Scoped place(ctx.place, Place::pinned);
    for (const auto& group : groups) {
      const Tensor flat = empty(ctx, {partition_numel(group)}, dtype_, Op::flat_parameter);
      copy_partitions(ctx, flat, {group});
      put_into(flat, 0, group);
    }
    return;
  }
  std::int64_t numel = 0;
  for (const auto& group : groups) numel += partition_numel(group);
  const std::uint64_t bytes = bytes_of(Shape{numel}, dtype_).count();
  Tensor on_host;
  {
    const Scoped place(ctx.place, Place::host);
    on_host = empty(ctx, {numel}, dtype_, Op::empty);
    copy_to_host(ctx, bytes);
    copy_partitions(ctx, on_host, groups);
    for (const auto& group : groups)
      for (Zero3Param* param : group) param->set_partition(Tensor());
    ctx.device.empty_cache();
  }
  copy_to_device(ctx, bytes);
  const Tensor flat = empty(ctx, {numel}, dtype_, Op::flat_parameter);
  copy_into(ctx, flat, on_host);
  std::int64_t start = 0;
  for (const auto& group : groups) start = put_into(flat, start, group);
}

/// _create_fp32_partitions: what is converted is copied once more, and held until the next has been converted.
void Zero3Optimizer::make_masters(Context& ctx) {
  const Scoped category(ctx.category, Category::optimizer_state);
  const Scoped place(ctx.place, options_.master_place());
  const bool converts = dtype_ != options_.master_dtype || options_.offload_param != options_.offload_optimizer;
  Tensor converted;
  for (const auto& group : groups_) {
    const Shape part{partition_numel(group)};
    move(ctx, part, options_.offload_param, options_.offload_optimizer);
    if (converts) converted = empty(ctx, part, options_.master_dtype, Op::to_copy);
    masters_.push_back(empty(ctx, part, options_.master_dtype, Op::clone));
    copy_partitions(ctx, masters_.back(), {group});
    set_requires_grad(masters_.back(), true);
  }
}

/// initialize_optimizer_states: a buffer of the size of the largest sub group stands for gradients for a moment. On the
/// host every sub group has its own for good.
void Zero3Optimizer::init_gradients(Context& ctx) {
  std::int64_t largest = 0;
  for (const auto& group : groups_) largest = std::max(largest, partition_numel(group));
  const Scoped category(ctx.category, Category::gradients);
  const Scoped place(ctx.place, options_.gradient_place());
  const Tensor buffer = empty(ctx, {largest}, options_.master_dtype, Op::zeros);
  if (!options_.offload_optimizer) return;
  for (const Tensor& master : masters_) {
    host_gradients_.push_back(empty(ctx, master.shape(), options_.master_dtype, Op::zeros));
    fill(ctx, host_gradients_.back(), 0);
  }
}

/// Of the parts of gradients that this rank keeps, where they live; the host waits for the answer of all ranks.
bool Zero3Optimizer::has_overflow(Context& ctx) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor overflow;
  {
    const Scoped stream(ctx.stream, options_.reduce_stream());
    gradients_->track_non_finite(ctx, nan_tracker_);
    Tensor copy;
    {
      const Scoped place(ctx.place, options_.master_place());
      copy = empty(ctx, {1}, DType::boolean, Op::clone);
      copy_into(ctx, copy, nan_tracker_);
    }
    if (options_.offload_optimizer) {
      const Tensor on_device = empty(ctx, {1}, DType::boolean, Op::to_copy);
      copy_into(ctx, on_device, copy);
      copy = on_device;
    }
    overflow = empty(ctx, {1}, DType::uint8, Op::to_copy);
    copy_into(ctx, overflow, copy);
    fill(ctx, nan_tracker_, 0);
  }
  wait_stream(ctx, ctx.stream, options_.reduce_stream());
  all_reduce(ctx, options_.group(), overflow, ReduceOp::max);
  ctx.device.synchronize();
  return item(ctx, overflow) != 0;
}

/// The norm of each sub group, and of all of them.
void Zero3Optimizer::take_norm(Context& ctx) {
  if (options_.offload_optimizer) {
    double squares = 0;  // on the host from here on
    for (std::size_t group = 0; group < groups_.size(); ++group)
      squares += std::pow(total_of_norms(ctx, gradients_->norms(group), options_.group()), 2);
    scaled_host_norm_ = std::sqrt(squares), loss_scale_of_norm_ = loss_scale_.value();
    return;
  }
  const Scoped category(ctx.category, Category::workspace);
  std::vector<Tensor> norms;
  for (std::size_t group = 0; group < groups_.size(); ++group)
    norms.push_back(direct_norm(ctx, gradients_->parts(group), options_.group()));
  {
    const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(norms.size())}, DType::float64, Op::stack);
    stack_into(ctx, stacked, norms);
    scaled_norm_ = empty(ctx, {}, DType::float64, Op::linear_norm);
    norm_into(ctx, scaled_norm_, stacked);
  }
  const Tensor norm = empty(ctx, {}, DType::float64, Op::div);
  compute(ctx, Unary::mul, norm, scaled_norm_, 1 / loss_scale_.value());
  norm_ = norm;
}

/// _prepare_fp32_grad_for_sub_group
void Zero3Optimizer::prepare_gradient(Context& ctx, std::size_t group) {
  const Scoped category(ctx.category, Category::gradients);
  const Shape part{partition_numel(groups_[group])};
  const std::vector<Tensor>& parts = gradients_->parts(group);
  Tensor flat = parts.size() == 1 ? parts.front() : empty(ctx, part, parts.front().dtype(), Op::cat);
  if (parts.size() > 1 && ctx.kernels(flat)) {
    std::int64_t start = 0;
    for (const Tensor& piece : parts) {
      copy_into(ctx, flat.flat(start, piece.numel()), piece);
      start += piece.numel();
    }
  }
  if (flat.dtype() != options_.master_dtype) {
    const Tensor wide = empty(ctx, part, options_.master_dtype, Op::to_copy);
    copy_into(ctx, wide, flat);
    flat = wide;
  }
  set_grad(masters_[group], std::move(flat));
}

/// unscale_and_clip_grads: the factor, from the norm.
void Zero3Optimizer::clip(Context& ctx, const Tensor& gradient) const {
  const Scoped category(ctx.category, Category::workspace);
  const auto of = [&](Op name, Unary op, const Tensor& x, double p = 0) {
    Tensor out = empty(ctx, {}, DType::float64, name);
    compute(ctx, op, out, x, p);
    return out;
  };
  constexpr double kEps = 1e-6;
  Tensor clip = of(Op::div, Unary::mul, scaled_norm_, 1 / loss_scale_.value());
  clip = of(Op::add, Unary::add, clip, kEps);
  clip = of(Op::div, Unary::mul, clip, 1 / options_.gradient_clipping);
  clip = of(Op::clamp, Unary::at_least, clip, 1);
  const Tensor combined = of(Op::mul, Unary::mul, clip, loss_scale_.value());
  const Tensor factor = of(Op::reciprocal, Unary::reciprocal, combined);
  compute(ctx, Binary::mul, gradient, gradient, factor);  // in place
}

void Zero3Optimizer::step(Context& ctx, Optimizer& optimizer) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  coordinator_.release_all(ctx);
  const bool overflow = options_.checks_overflow() && has_overflow(ctx);
  loss_scale_.update(overflow);
  if (overflow) return gradients_->drop_norms();
  take_norm(ctx);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (options_.offload_optimizer) {
      unscale_and_clip_by_number(ctx, host_gradients_[group], scaled_host_norm_,
                                 {options_.gradient_clipping, loss_scale_.value()});
      set_grad(masters_[group], host_gradients_[group]);
    } else {
      prepare_gradient(ctx, group);
      if (options_.clips())
        clip(ctx, grad_of(masters_[group]));
      else if (loss_scale_.value() != 1)  // by a Python number
        compute(ctx, Unary::mul, grad_of(masters_[group]), grad_of(masters_[group]), 1 / loss_scale_.value());
    }
    optimizer.step(ctx);
    put_back(ctx, group);
    move(ctx, masters_[group].shape(), options_.offload_optimizer, options_.offload_param);
    set_grad(masters_[group], Tensor());
  }
  scaled_norm_.reset();
  gather_persistent(ctx);
  for (const auto& group : groups_)
    for (Zero3Param* param : group) param->drop_secondary();
  gradients_->drop_norms();
}

/// _reassign_or_swap_out_partitioned_parameters: the updated master weights, in the dtype of the parameters.
void Zero3Optimizer::put_back(Context& ctx, std::size_t group) const {
  if (!ctx.kernels(masters_[group])) return;
  std::int64_t start = 0;
  for (const Zero3Param* param : groups_[group]) {
    copy_into(ctx, param->partition(), masters_[group].flat(start, param->partition_numel()));
    start += param->partition_numel();
  }
}

void Zero3Optimizer::gather_persistent(Context& ctx) {
  if (persistent_.size() == 1) persistent_.front()->all_gather(ctx);
  if (persistent_.size() > 1) unwaited_ = gather_blocking(ctx, persistent_, options_);
}

}  // namespace qlp

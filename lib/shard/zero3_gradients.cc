#include "shard/zero3_gradients.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "shard/zero3_norm.h"
#include "tensor/cast.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"
#include "tensor/wait_stream.h"

namespace qlp {
namespace {

std::vector<Tensor> scaled(Context& ctx, const std::vector<Tensor>& tensors, double factor) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) {
    out.push_back(empty_like(ctx, tensor, Op::mul));
    compute(ctx, Unary::mul, out.back(), tensor, factor);
  }
  return out;
}

}  // namespace

Zero3Gradients::Zero3Gradients(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups,
                               const std::vector<Tensor>& masters, const Zero3Options& options)
    : options_(options), parameter_dtype_(groups.front().front()->dtype()), norms_(groups.size()) {
  if (options.contiguous_gradients) {
    const Scoped category(ctx.category, Category::communication_buffers);
    bucket_ = empty(ctx, {options.reduce_bucket_size}, options.reduced_dtype(), Op::empty);
  }
  std::int64_t numel = 0;
  for (const auto& group : groups)
    for (const Zero3Param* param : group) numel += param->partition_numel();
  {
    const Scoped category(ctx.category, Category::gradients);
    const Scoped place(ctx.place, options.gradient_place());
    flat_ = empty(ctx, {numel}, options.gradient_dtype(), Op::zeros);
    fill(ctx, flat_, 0);
  }
  std::int64_t start = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<Tensor> parts;
    std::int64_t start_in_group = 0;
    for (const Zero3Param* param : groups[i]) {
      const std::int64_t own = param->partition_numel();
      parts.push_back(flat_.flat(start, own));
      const Tensor master = options.offload_optimizer ? masters[i].flat(start_in_group, own) : Tensor();
      kept_[param] = {.part = parts.back(), .master = master, .group = i, .arrived = {}};
      start += own, start_in_group += own;
    }
    parts_.push_back(std::move(parts));
    for (Zero3Param* param : groups[i]) add_hook(ctx, *param);
  }
}

/// create_reduce_and_remove_grad_hooks: each parameter is whole while it gets its hook.
void Zero3Gradients::add_hook(Context& ctx, Zero3Param& param) {
  param.all_gather(ctx);
  if (param.leaf)
    of_leaf_[param.leaf].push_back(&param);
  else
    register_post_accumulate_hook(param.tensor(), [this, &param](Context& c) { ready(c, param); });
  param.free(ctx);
}

void Zero3Gradients::leave(Context& ctx, const Module& leaf) {
  const auto params = of_leaf_.find(&leaf);
  if (params == of_leaf_.end()) return;
  for (Zero3Param* param : params->second) ready(ctx, *param);
}

/// reduce_independent_p_g_buckets_and_remove_grads, __add_grad_to_ipg_bucket
void Zero3Gradients::ready(Context& ctx, Zero3Param& param) {
  if (bucket_numel_ > 0 && bucket_numel_ + param.numel() > options_.reduce_bucket_size) reduce(ctx);
  if (bucket_.defined() && bucket_numel_ + param.numel() <= options_.reduce_bucket_size) {
    grad_of(param.tensor()).storage().record_stream(options_.reduce_stream());
    const Tensor place = bucket_.flat(bucket_numel_, param.numel()).view(param.shape());
    wait_stream(ctx, options_.reduce_stream(), ctx.stream);
    const Scoped stream(ctx.stream, options_.reduce_stream());
    copy_into(ctx, place, grad_of(param.tensor()));
    set_grad(param.tensor(), place);
  }
  in_bucket_.push_back(&param);
  bucket_numel_ += param.numel();
}

/// __reduce_and_partition_ipg_grads
void Zero3Gradients::reduce(Context& ctx) {
  if (in_bucket_.empty()) return;
  wait_stream(ctx, options_.reduce_stream(), ctx.stream);
  const Scoped stream(ctx.stream, options_.reduce_stream());
  const bool as_a_whole = !options_.reduce_scatter && bucket_.defined() && bucket_numel_ <= options_.reduce_bucket_size;
  if (!as_a_whole) std::sort(in_bucket_.begin(), in_bucket_.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  const std::vector<Tensor> reduced = as_a_whole ? all_reduce_bucket(ctx) : reduce_scatter(ctx);
  Tensor on_device;  // the name of the loop in Python outlives its turn
  for (std::size_t i = 0; i < in_bucket_.size(); ++i) {
    Zero3Param& param = *in_bucket_[i];
    if (param.holds_data()) {
      keep_part(ctx, param, reduced[i]);
      if (options_.offload_optimizer) offload_part(ctx, param, on_device);
      grad_of(param.tensor()).storage().record_stream(ctx.stream);
    }
    set_grad(param.tensor(), Tensor());
    kept_.at(&param).arrived.reset();
  }
  in_bucket_.clear();
  bucket_numel_ = 0;
}

/// __avg_scatter_grads: this rank's part of each gradient, in the dtype of the first parameter;
/// reduce_scatter_coalesced lays the parts for each rank behind each other, with padding, but reduces a single gradient
/// that can be cut evenly where it lies.
std::vector<Tensor> Zero3Gradients::reduce_scatter(Context& ctx) const {
  const Scoped category(ctx.category, Category::communication_buffers);
  const std::int64_t world = options_.world_size;
  std::vector<Tensor> whole, own;
  for (const Zero3Param* param : in_bucket_)
    whole.push_back(cast(ctx, grad_of(param->tensor()), options_.reduced_dtype()).view({param->numel()}));
  const double divisor = options_.gradient_predivide_factor;
  const bool divides = !options_.prescale_gradients && divisor != 1;
  if (divides) whole = scaled(ctx, whole, 1 / divisor);
  if (in_bucket_.size() == 1 && in_bucket_.front()->numel() % world == 0) {
    const std::int64_t part = in_bucket_.front()->numel() / world;
    own.push_back(whole.front().flat(options_.rank * part, part));
    qlp::reduce_scatter(ctx, options_.group(), own.front(), whole.front(), ReduceOp::average);
  } else {
    own = scatter_joined(ctx, whole);
  }
  if (divides && divisor != static_cast<double>(world)) own = scaled(ctx, own, divisor);
  std::vector<Tensor> parts;
  for (const Tensor& part : own) parts.push_back(cast(ctx, part, parameter_dtype_));
  return parts;
}

/// __avg_scatter_contiguous_grads: the bucket is summed as it lies, multiplied into a copy, and cut.
std::vector<Tensor> Zero3Gradients::all_reduce_bucket(Context& ctx) const {
  const Scoped category(ctx.category, Category::communication_buffers);
  const std::int64_t world = options_.world_size;
  const double divisor = options_.gradient_predivide_factor;
  Tensor sum = bucket_.flat(0, bucket_numel_);
  if (!options_.prescale_gradients && divisor != 1) compute(ctx, Unary::mul, sum, sum, 1 / divisor);
  all_reduce(ctx, options_.group(), sum, ReduceOp::average);
  if (!options_.prescale_gradients && divisor != static_cast<double>(world)) sum = scaled(ctx, {sum}, divisor).front();
  sum = cast(ctx, sum, parameter_dtype_);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const Zero3Param* param : in_bucket_) {
    const std::int64_t part = param->partition_numel();
    const std::int64_t at = std::min(options_.rank * part, param->numel());
    const std::int64_t filled = std::min(part, param->numel() - at);
    parts.push_back(sum.flat(start + at, filled));
    if (filled < part) {
      const Tensor padded = empty(ctx, {part}, options_.reduced_dtype(), Op::zeros);
      fill(ctx, padded, 0);
      if (filled > 0) copy_into(ctx, padded.flat(0, filled), parts.back());
      parts.back() = padded;
    }
    start += param->numel();
  }
  return parts;
}

std::vector<Tensor> Zero3Gradients::scatter_joined(Context& ctx, const std::vector<Tensor>& whole) const {
  const std::int64_t world = options_.world_size;
  std::vector<Tensor> padding;
  std::int64_t total = 0;
  for (std::int64_t rank = 0; rank < world; ++rank)
    for (const Tensor& gradient : whole) {
      const std::int64_t part = ceil_div(gradient.numel(), world);
      const std::int64_t filled = std::clamp<std::int64_t>(gradient.numel() - rank * part, 0, part);
      if (filled < part) padding.push_back(empty(ctx, {part - filled}, gradient.dtype(), Op::empty));
      total += part;
    }
  const Tensor flat = empty(ctx, {total}, options_.reduced_dtype(), Op::cat);
  const std::int64_t row = total / world;
  if (ctx.kernels(flat)) {
    fill(ctx, flat, 0);
    std::int64_t start = 0;
    for (const Tensor& gradient : whole) {
      const std::int64_t part = ceil_div(gradient.numel(), world);
      for (std::int64_t at = 0, rank = 0; at < gradient.numel(); at += part, ++rank) {
        const std::int64_t own = std::min(part, gradient.numel() - at);
        copy_into(ctx, flat.flat(rank * row + start, own), gradient.flat(at, own));
      }
      start += part;
    }
  }
  const Tensor mine = flat.flat(options_.rank * row, row);
  qlp::reduce_scatter(ctx, options_.group(), mine, flat, ReduceOp::average);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const Zero3Param* param : in_bucket_) {
    parts.push_back(mine.flat(start, param->partition_numel()));
    start += param->partition_numel();
  }
  return parts;
}

/// partition_grads: the first of a step is copied, the others are added.
void Zero3Gradients::keep_part(Context& ctx, const Zero3Param& param, const Tensor& part) {
  Kept& kept = kept_.at(&param);
  if (options_.offload_optimizer) {
    if (ctx.kernels(kept.part)) kept.arrived = part;
    return;
  }
  if (fresh_.insert(&param).second) return copy_into(ctx, kept.part, part);
  const Scoped category(ctx.category, Category::gradient_temporaries);
  compute(ctx, Binary::add, kept.part, kept.part, cast(ctx, part, kept.part.dtype()));
}

/// partition_grads, where master weights live on the host: the part is copied there and back, its norm is taken on the
/// way, and it goes to the gradient of the master weight.
void Zero3Gradients::offload_part(Context& ctx, const Zero3Param& param, Tensor& on_device) {
  const Scoped category(ctx.category, Category::gradient_temporaries);
  const Shape part{param.partition_numel()};
  Kept& kept = kept_.at(&param);
  const std::uint64_t bytes = bytes_of(part, flat_.dtype()).count();
  copy_to_device(ctx, bytes);
  on_device = empty(ctx, part, flat_.dtype(), Op::to_copy);
  if (ctx.kernels(on_device)) add_arrived(ctx, param, on_device);
  copy_to_host(ctx, bytes);
  if (!boundary_) return;
  norms_[kept.group].push_back(buffered_norm(ctx, on_device));
  const bool casts = on_device.dtype() != DType::float32;
  const Tensor wide = casts ? empty(ctx, part, DType::float32, Op::to_copy) : on_device;
  if (casts) copy_into(ctx, wide, on_device);
  copy_to_host(ctx, bytes_of(part, DType::float32).count());
  copy_into(ctx, kept.master, wide);
}

/// The first of a step is the part, the others are added to what the host has.
void Zero3Gradients::add_arrived(Context& ctx, const Zero3Param& param, const Tensor& on_device) {
  Kept& kept = kept_.at(&param);
  if (fresh_.insert(&param).second) {
    copy_into(ctx, on_device, kept.arrived);
  } else {
    copy_into(ctx, on_device, kept.part);
    compute(ctx, Binary::add, on_device, on_device, kept.arrived);
  }
  copy_into(ctx, kept.part, on_device);
}

/// isinf(grad_partitions_flat_buffer).any(), then isnan: copies of the whole buffer (stage3.py, has_overflow).
void Zero3Gradients::track_non_finite(Context& ctx, const Tensor& tracker) const {
  const Scoped place(ctx.place, options_.gradient_place());
  const auto track = [&](const Tensor& bad) {
    const Tensor any = empty(ctx, {}, DType::boolean, Op::any);
    full_reduction_scratch(ctx, bad.numel(), Op::any);
    reduce_all(ctx, Reduce::max, any, bad);
    compute(ctx, Binary::logical_or, tracker, tracker, any);
  };
  {
    Tensor magnitude = empty_like(ctx, flat_, Op::abs);
    const Tensor is_inf = empty_like(ctx, flat_, DType::boolean, Op::eq);
    magnitude.reset();
    compute(ctx, Unary::is_inf, is_inf, flat_);
    track(is_inf);
  }
  const Tensor is_nan = empty_like(ctx, flat_, DType::boolean, Op::ne);
  compute(ctx, Unary::is_nan, is_nan, flat_);
  track(is_nan);
}

void Zero3Gradients::finish_backward(Context& ctx) {
  reduce(ctx);
  ctx.device.synchronize();
}

}  // namespace qlp

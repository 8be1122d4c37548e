#include "shard/fsdp2_param.h"

#include <utility>

#include "autograd/node.h"
#include "optim/cut_rows.h"
#include "shard/rows.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// CPUOffloadPolicy: where a shard that was made on the device, or is still to be loaded, goes.
Tensor taken_off_device(Context& ctx, const Tensor& shard, const Fsdp2Options& options) {
  if (!options.cpu_offload || shard.storage().place() == Place::meta) return shard;
  const Tensor host = to_host(ctx, shard);
  return options.pin_memory ? pin_memory(ctx, host) : host;
}

}  // namespace

Fsdp2Param::Fsdp2Param(Context& ctx, Parameter& parameter, const Tensor& whole, const Fsdp2Options& options)
    : parameter_(&parameter), options_(&options), shape_(whole.shape()) {
  const Rows rows = rows_of(shape_[0], options.world_size, options.rank);
  const Scoped category(ctx.category, whole.storage().label().category);
  shard_data_ = empty(ctx, shape_.with(0, rows.padded), whole.dtype(), Op::parameter);
  cut_from(ctx, whole, rows.own);
  shard_data_ = taken_off_device(ctx, shard_data_, options);
  sharded_ = shard_data_.narrow(0, 0, rows.own);
  set_requires_grad(sharded_, parameter.trainable);
  parameter.tensor = sharded_;
}

Fsdp2Param::Fsdp2Param(Context& ctx, Parameter& parameter, const Fsdp2Options& options)
    : parameter_(&parameter), options_(&options), shape_(parameter.shape), sharded_(parameter.tensor) {
  const Rows rows = rows_of(shape_[0], options.world_size, options.rank);
  const Scoped place(ctx.place, Place::meta);
  shard_data_ = empty(ctx, shape_.with(0, rows.padded), sharded_.dtype(), Op::parameter);
}

/// The rows of this rank; what pads them is 0.
void Fsdp2Param::cut_from(Context& ctx, const Tensor& whole, std::int64_t rows) const {
  if (!ctx.kernels(shard_data_)) return;
  fill(ctx, shard_data_, 0);
  if (rows) copy_into(ctx, shard_data_.narrow(0, 0, rows), whole.narrow(0, shard_data_.size(0) * options_->rank, rows));
}

void Fsdp2Param::cast_shard(Context& ctx, DType dtype) {
  if (sharded_.dtype() == dtype) return;
  const Scoped category(ctx.category, sharded_.storage().label().category);
  const Tensor cast = empty_like(ctx, sharded_, dtype, Op::to_copy);
  copy_into(ctx, cast, sharded_);
  sharded_ = cast;
  set_requires_grad(sharded_, parameter_->trainable);
  if (shown_) parameter_->tensor = sharded_;
}

void Fsdp2Param::load(Context& ctx, const Tensor& whole) {
  const Scoped category(ctx.category, sharded_.storage().label().category);
  shard_data_ = empty(ctx, shard_data_.shape(), sharded_.dtype(), Op::parameter);
  cut_from(ctx, whole, sharded_.size(0));
  shard_data_ = taken_off_device(ctx, shard_data_, *options_);
  sharded_ = shard_data_.narrow(0, 0, sharded_.size(0));
  set_requires_grad(sharded_, parameter_->trainable);
  if (shown_) parameter_->tensor = sharded_;
}

void Fsdp2Param::reset_shard(Context& ctx) {
  if (sharded_.dtype() == shard_data_.dtype() && sharded_.storage().place() == shard_data_.storage().place()) return;
  if (sharded_.shape() == shard_data_.shape()) {
    shard_data_ = sharded_;
    return;
  }
  const Scoped category(ctx.category, sharded_.storage().label().category);
  const Scoped place(ctx.place, sharded_.storage().place());
  shard_data_ = empty(ctx, shard_data_.shape(), sharded_.dtype(), Op::zeros);
  if (ctx.kernels(shard_data_)) {
    fill(ctx, shard_data_, 0);
    copy_into(ctx, shard_data_.narrow(0, 0, sharded_.size(0)), sharded_);
  }
  // The optimizer holds the tensor: it stays, on the new storage.
  sharded_.impl()->storage = shard_data_.impl()->storage, sharded_.impl()->offset = 0;
}

Tensor Fsdp2Param::gathered(Context& ctx, const Tensor& part) const {
  const Scoped category(ctx.category, Category::gathered_weights);
  const Tensor own = to_device(ctx, part);  // _gather_state_dict: to where the mesh is
  const RankGroup group = options_->group();
  return group.size == 1 ? own : all_rows(ctx, own, {.group = group, .whole = shape_[0]});
}

std::optional<DType> Fsdp2Param::param_dtype() const {
  const auto& wanted = options_->precision.param_dtype;
  return wanted == orig_dtype() ? std::nullopt : wanted;
}

std::optional<DType> Fsdp2Param::reduce_dtype() const {
  const MixedPrecisionPolicy& policy = options_->precision;
  return policy.reduce_dtype == policy.param_dtype ? std::nullopt : policy.reduce_dtype;
}

Tensor Fsdp2Param::gather_input(Context& ctx) const {
  Tensor source = to_device(ctx, gather_source());
  if (source.dtype() == gathered_dtype()) return source;
  Tensor cast = empty_like(ctx, source, gathered_dtype(), Op::to_copy);
  copy_into(ctx, cast, source);
  return cast;
}

void Fsdp2Param::allocate_unsharded(Context& ctx) {
  const Shape padded = shape_.with(0, shard_data_.size(0) * options_->world_size);
  if (gathered_.defined()) {
    gathered_.storage().resize(bytes_of(padded, gathered_.dtype()).count(), ctx.stream);
    return;
  }
  const Scoped category(ctx.category, Category::gathered_weights);
  gathered_ = empty(ctx, padded, gathered_dtype(), Op::unsharded_parameter);
  unsharded_ = gathered_.narrow(0, 0, shape_[0]);
  unsharded_.impl()->is_view = false;
  set_requires_grad(unsharded_, parameter_->trainable);
}

void Fsdp2Param::to_unsharded() {
  if (shown_) parameter_->tensor = unsharded_;
  post_forward_.reset();
}

void Fsdp2Param::to_sharded() {
  if (shown_) parameter_->tensor = sharded_;
  gathered_.storage().resize(0, 0);
}

void Fsdp2Param::to_sharded_post_forward(Context& ctx, std::int64_t ranks) {
  {
    const Scoped category(ctx.category, Category::gathered_weights);
    const std::int64_t part = gathered_.numel() / ranks;
    post_forward_ = empty(ctx, {part}, gathered_.dtype(), Op::clone);
    copy_into(ctx, post_forward_, gathered_.flat(options_->rank % ranks * part, part));
  }
  to_sharded();
}

void Fsdp2Param::accumulate_grad(Context& ctx) {
  if (!unsharded_.defined() || !grad_of(unsharded_).defined()) return;
  const auto dtype = reduce_dtype();
  if (!dtype || grad_of(unsharded_).dtype() == *dtype) return;
  const Scoped category(ctx.category, Category::gradients);
  accumulated_grad_ = empty_like(ctx, grad_of(unsharded_), *dtype, Op::to_copy);
  copy_into(ctx, accumulated_grad_, grad_of(unsharded_));
  set_grad(unsharded_, Tensor());
}

void Fsdp2Param::add_to_accumulated_grad(Context& ctx) {
  if (!accumulated_grad_.defined()) return;
  if (const Tensor& grad = grad_of(unsharded_); grad.defined())
    compute(ctx, Binary::add, accumulated_grad_, accumulated_grad_, grad);
  set_grad(unsharded_, Tensor());
}

Tensor Fsdp2Param::take_grad(Context& ctx) {
  if (!unsharded_.defined()) return {};
  Tensor grad = std::exchange(accumulated_grad_, Tensor());
  if (grad.defined()) return grad;
  grad = grad_of(unsharded_);
  set_grad(unsharded_, Tensor());
  const bool is_part = grad.defined() && grad.storage().bytes() > bytes_of(grad.shape(), grad.dtype()).count();
  if (!is_part) return grad;
  Tensor own = empty_like(ctx, grad, Op::clone);  // _get_grad_inner_tensor redistributes
  copy_into(ctx, own, grad);
  return own;
}

}  // namespace qlp

#include "shard/zero3_param.h"

#include <algorithm>

#include "autograd/node.h"
#include "base/rounding.h"
#include "shard/zero3_gather.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

Zero3Param::Zero3Param(Context& ctx, Parameter& parameter, std::size_t id, const Zero3Options& options)
    : parameter_(&parameter),
      id_(id),
      options_(&options),
      shape_(parameter.tensor.shape()),
      dtype_(parameter.tensor.dtype()),
      category_(parameter.tensor.storage().label().category),
      partition_numel_(ceil_div(numel(), options.world_size)) {
  broadcast(ctx, options.group(), parameter.tensor);
  keep_secondary(ctx);
  {
    const Scoped category(ctx.category, category_);
    const Scoped place(ctx.place, options.param_place());
    partition_ = empty(ctx, {partition_numel_}, dtype_, Op::flat_parameter);
  }
  if (options.offload_param) copy_to_host(ctx, bytes_of(Shape{partition_numel_}, dtype_).count());
  partition_whole(ctx);
  free(ctx);
}

void Zero3Param::partition_whole(Context& ctx) const {
  fill_part(ctx, partition_, options_->rank);
  if (secondary_.defined()) fill_part(ctx, secondary_, options_->rank % options_->secondary_ranks);
}

Zero3Param::~Zero3Param() = default;

bool Zero3Param::holds_data() const { return partition_numel_ * options_->rank < numel(); }

void Zero3Param::show(const Tensor& data) { set_data(tensor(), data.flat(0, numel()).view(shape_)); }

void Zero3Param::all_gather(Context& ctx) {
  const Scoped category(ctx.category, Category::gathered_weights);
  const Tensor flat = empty(ctx, {partition_numel_ * options_->world_size}, dtype_, Op::all_gather);
  if (partition_.on_host()) copy_to_device(ctx, bytes_of(Shape{partition_numel_}, dtype_).count());
  const Tensor own = flat.flat(partition_numel_ * options_->rank, partition_numel_);
  copy_into(ctx, own, partition_);
  qlp::all_gather(ctx, options_->group(), flat, own);
  const Tensor whole = empty(ctx, shape_, dtype_, Op::unsharded_parameter);
  copy_elements(ctx, whole, flat.flat(0, numel()));
  set_data(tensor(), whole);
  status = Zero3Status::available;
}

/// _partition_param_sec
void Zero3Param::keep_secondary(Context& ctx) {
  if (options_->secondary_ranks == 1 || secondary_.defined()) return;
  const Scoped category(ctx.category, category_);
  const std::int64_t part = partition_numel_ * options_->world_size / options_->secondary_ranks;
  secondary_ = empty(ctx, {part}, dtype_, Op::flat_parameter);
  fill_part(ctx, secondary_, options_->rank % options_->secondary_ranks);
}

/// The `place`-th part of the whole, with padding.
void Zero3Param::fill_part(Context& ctx, const Tensor& part, std::int64_t place) const {
  if (!ctx.kernels(part)) return;
  const std::int64_t start = part.numel() * place;
  const std::int64_t own = std::clamp<std::int64_t>(numel() - start, 0, part.numel());
  fill(ctx, part, 0);
  if (own > 0) copy_into(ctx, part.flat(0, own), tensor().view({numel()}).flat(start, own));
}

void Zero3Param::free(Context& ctx) {
  keep_secondary(ctx);
  tensor().storage().record_stream(ctx.stream);
  set_data(tensor(), empty(ctx, {0}, dtype_, Op::empty));
  status = Zero3Status::not_available;
}

Tensor partition_on_device(Context& ctx, const Zero3Param& param) {
  if (!param.partition().on_host()) return param.partition();
  const Shape part{param.partition_numel()};
  copy_to_device(ctx, bytes_of(part, param.dtype()).count());
  const Scoped category(ctx.category, Category::gathered_weights);
  Tensor copy = empty(ctx, part, param.dtype(), Op::to_copy);
  copy_into(ctx, copy, param.partition());
  return copy;
}

}  // namespace qlp

#include "shard/zero_group.h"

#include <numeric>
#include <utility>

#include "autograd/node.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

std::vector<std::size_t> order_of(const std::vector<Parameter*>& parameters, const ZeroOptions& options) {
  if (options.round_robin_gradients) return round_robin_order(parameters.size(), options.world_size);
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::size_t> inverse(const std::vector<std::size_t>& order) {
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

std::vector<std::int64_t> numels_of(const std::vector<Parameter*>& parameters, const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> numels;
  for (const std::size_t i : order) numels.push_back(parameters[i]->tensor.numel());
  return numels;
}

/// torch.cat of tensors of these dtypes.
DType joined_dtype(const std::vector<Parameter*>& parameters) {
  const Tensor* widest = &parameters.front()->tensor;
  DType dtype = widest->dtype();
  for (const Parameter* parameter : parameters)
    if (parameter->tensor.dtype() != dtype) dtype = promote(*widest, parameter->tensor);
  return dtype;
}

}  // namespace

ZeroGroup::ZeroGroup(Context& ctx, std::vector<Parameter*> parameters, const ZeroOptions& options)
    : parameters_(std::move(parameters)),
      order_(order_of(parameters_, options)),
      place_(inverse(order_)),
      layout_(numels_of(parameters_, order_), options.world_size) {
  for (const std::size_t place : layout_.members(options.rank)) members_.push_back(order_[place]);
  flatten(ctx);
  make_master(ctx, options);
}

/// The parameters wait on the host while the flat buffer is made there too; on the GPU one element stands for each.
void ZeroGroup::flatten(Context& ctx) {
  const Scoped category(ctx.category, parameters_.front()->tensor.storage().label().category);
  const DType dtype = joined_dtype(parameters_);
  std::vector<Tensor> waiting;
  for (Parameter* parameter : parameters_) {
    waiting.push_back(to_host(ctx, parameter->tensor));
    set_data(parameter->tensor, empty(ctx, {1}, DType::float32, Op::to_copy));
  }
  ctx.device.empty_cache();
  const Shape shape{layout_.numel()};
  std::vector<Shape> shapes;
  for (const Tensor& tensor : waiting) shapes.push_back(tensor.shape());
  {
    const Scoped place(ctx.place, Place::host);
    const Tensor joined = empty(ctx, shape, dtype, Op::cat);
    join(ctx, joined, waiting);
    waiting.clear();
    const Scoped back(ctx.place, Place::device);
    flat_ = empty(ctx, shape, dtype, Op::flat_parameter);
    copy_into(ctx, flat_, joined);
    copy_to_device(ctx, bytes_of(shape, dtype).count());
  }
  std::int64_t start = 0;
  for (const std::size_t i : order_) {
    set_data(parameters_[i]->tensor, flat_.strided(shapes[i], contiguous_strides(shapes[i]), start));
    start += shapes[i].numel();
  }
}

/// In the order of the flat buffer; what pads it is 0.
void ZeroGroup::join(Context& ctx, const Tensor& joined, const std::vector<Tensor>& tensors) const {
  if (!ctx.kernels(joined)) return;
  fill(ctx, joined, 0);
  std::int64_t start = 0;
  for (const std::size_t i : order_) {
    copy_elements(ctx, joined.flat(start, tensors[i].numel()), tensors[i]);
    start += tensors[i].numel();
  }
}

ZeroLayout ZeroGroup::layout_of(const std::vector<Parameter*>& parameters, const ZeroOptions& options) {
  std::vector<std::int64_t> numels;
  for (const std::size_t i : order_of(parameters, options)) numels.push_back(parameters[i]->shape.numel());
  return {numels, options.world_size};
}

Tensor ZeroGroup::partition(std::int64_t rank) const {
  return flat_.flat(rank * layout_.partition_size(), layout_.partition_size());
}

/// A clone of this rank's partition, as a rule in float32; with offload it goes to the host, and is cast there.
void ZeroGroup::make_master(Context& ctx, const ZeroOptions& options) {
  const Scoped category(ctx.category, Category::optimizer_state);
  const Shape shape{layout_.partition_size()};
  const Tensor clone = empty(ctx, shape, flat_.dtype(), Op::clone);
  copy_into(ctx, clone, partition(options.rank));
  if (options.offload_optimizer) {
    copy_to_host(ctx, bytes_of(shape, flat_.dtype()).count());
    master_ = offloaded(ctx, layout_.partition_size(), options.master_dtype, options);
    host_copy_ = offloaded(ctx, layout_.partition_size(), flat_.dtype(), options);
  } else {
    const bool casts = clone.dtype() != options.master_dtype;
    master_ = casts ? empty(ctx, shape, options.master_dtype, Op::to_copy) : clone;
  }
  if (!master_.is(clone)) copy_into(ctx, master_, clone);
  set_requires_grad(master_, true);
}

Tensor offloaded(Context& ctx, std::int64_t numel, DType dtype, const ZeroOptions& options) {
  const Scoped place(ctx.place, Place::host);
  const Tensor pageable = empty(ctx, {numel}, dtype, Op::zeros);
  return options.pin_memory ? pin_memory(ctx, pageable) : pageable;
}

}  // namespace qlp

#include "tensor/factories.h"

#include <algorithm>
#include <utility>

#include "tensor/collective.h"
#include "tensor/compute.h"

namespace qlp {
namespace {

Ref<Storage> storage_for(Context& ctx, const Shape& shape, DType dtype, Op op, Place place) {
  const std::uint64_t bytes = ctx.abandoned ? 0 : bytes_of(shape, dtype).count();
  return make_ref<Storage>(ctx.device, bytes, ctx.stream, ctx.label(op), place);
}

/// Results are where operands are, but for page-locked memory and mapped files, which only what asks for them gets.
Place computed_at(Place operand) {
  return operand == Place::pinned || operand == Place::mapped ? Place::host : operand;
}

/// Dense strides in the order of `like`'s, or row-major where `like` has holes, overlaps or ties.
Strides preserved_strides(const Shape& shape, const Strides& like) {
  std::array<int, Shape::kMaxRank> order{};
  const int rank = static_cast<int>(shape.rank());
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.begin() + rank, [&](int a, int b) {
    const auto sa = like[static_cast<std::size_t>(a)], sb = like[static_cast<std::size_t>(b)];
    return sa > sb && shape[a] != 1 && shape[b] != 1;
  });
  Strides strides{};
  std::int64_t step = 1;
  for (int i = rank; i-- > 0;) {
    const int dim = order[static_cast<std::size_t>(i)];
    strides[static_cast<std::size_t>(dim)] = step;
    step *= shape[dim];
  }
  return strides;
}

/// A copy in another place, under the label of the original.
Tensor copy_at(Context& ctx, const Tensor& tensor, Place where) {
  const Scoped place(ctx.place, where);
  const Scoped category(ctx.category, tensor.storage().label().category);
  Tensor copy = empty(ctx, tensor.shape(), tensor.dtype(), Op::to_copy);
  copy_into(ctx, copy, tensor);
  return copy;
}

}  // namespace

Tensor empty(Context& ctx, const Shape& shape, DType dtype, Op op) {
  return Tensor(make_ref<TensorImpl>(storage_for(ctx, shape, dtype, op, ctx.place), shape, dtype));
}

Tensor empty_like(Context& ctx, const Tensor& like, DType dtype, Op op) {
  auto storage = storage_for(ctx, like.shape(), dtype, op, computed_at(like.storage().place()));
  if (like.contiguous()) return Tensor(make_ref<TensorImpl>(std::move(storage), like.shape(), dtype));
  return Tensor(
      make_ref<TensorImpl>(std::move(storage), like.shape(), preserved_strides(like.shape(), like.strides()), dtype));
}

Tensor empty_for(Context& ctx, const Tensor& a, const Tensor& b, DType dtype, Op op) {
  if (a.shape() == b.shape()) return empty_like(ctx, a, dtype, op);
  const Shape shape = broadcast(a.shape(), b.shape());
  const Tensor& full = a.shape() == shape ? a : b;
  if (full.shape() == shape) return empty_like(ctx, full, dtype, op);
  return empty(ctx, shape, dtype, op);
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  for (int i = 1; i <= static_cast<int>(shorter.rank()); ++i)
    if (out[-i] == 1) out = out.with(-i, shorter[-i]);
  return out;
}

DType promote(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  if (is_floating(a.dtype()) != is_floating(b.dtype())) return is_floating(a.dtype()) ? a.dtype() : b.dtype();
  if ((a.shape().rank() == 0) != (b.shape().rank() == 0)) return a.shape().rank() ? a.dtype() : b.dtype();
  if (size_of(a.dtype()) == size_of(b.dtype())) return DType::float32;  // float16 with bfloat16
  return size_of(a.dtype()) > size_of(b.dtype()) ? a.dtype() : b.dtype();
}

Tensor to_device(Context& ctx, const Tensor& tensor) {
  if (!tensor.on_host()) return tensor;
  Tensor moved = copy_at(ctx, tensor, Place::device);
  moved.impl()->requires_grad = tensor.requires_grad();
  if (tensor.storage().place() != Place::meta) copy_to_device(ctx, bytes_of(tensor.shape(), tensor.dtype()).count());
  return moved;
}

Tensor to_host(Context& ctx, const Tensor& tensor) {
  if (!tensor.on_host()) copy_to_host(ctx, bytes_of(tensor.shape(), tensor.dtype()).count());
  return copy_at(ctx, tensor, Place::host);
}

Tensor pin_memory(Context& ctx, const Tensor& tensor) {
  return tensor.storage().place() == Place::pinned ? tensor : copy_at(ctx, tensor, Place::pinned);
}

void scratch(Context& ctx, std::uint64_t bytes, Op op) {
  if (bytes && ctx.place == Place::device && !ctx.abandoned)
    ctx.device.free(ctx.device.allocate(bytes, ctx.stream, ctx.label(op)));
}

}  // namespace qlp

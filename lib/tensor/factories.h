// New tensors, and the strides that elementwise operations give to their results.
#pragma once

#include "tensor/context.h"

namespace qlp {

/// torch.empty: row-major.
Tensor empty(Context& ctx, const Shape& shape, DType dtype, Op op);
/// Indices and counts.
inline Tensor int64s(Context& ctx, const Shape& shape, Op op) { return empty(ctx, shape, DType::int64, op); }
/// torch.empty_like, in the place of its model, with preserve_format: a dense tensor keeps the order of its strides.
Tensor empty_like(Context& ctx, const Tensor& like, DType dtype, Op op);
inline Tensor empty_like(Context& ctx, const Tensor& like, Op op) { return empty_like(ctx, like, like.dtype(), op); }
/// The result of an elementwise operation on operands that broadcast to `shape` (TensorIterator's stride order).
Tensor empty_for(Context& ctx, const Tensor& a, const Tensor& b, DType dtype, Op op);

/// The shape that two shapes broadcast to.
Shape broadcast(const Shape& a, const Shape& b);
/// The dtype of an operation on two tensors (torch.promote_types); a 0-dim tensor only counts by its kind.
DType promote(const Tensor& a, const Tensor& b);

/// A copy on the device of a tensor that is on the host; the tensor itself if it is on the device.
Tensor to_device(Context& ctx, const Tensor& tensor);
/// A copy on the host, in pageable memory.
Tensor to_host(Context& ctx, const Tensor& tensor);
/// Tensor.pin_memory(): a copy in page-locked memory; the tensor itself if it is there.
Tensor pin_memory(Context& ctx, const Tensor& tensor);

/// A tensor that lives no longer than the operation that calls this: memory taken and given back.
void scratch(Context& ctx, std::uint64_t bytes, Op op);

}  // namespace qlp

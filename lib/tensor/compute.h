// How an operation has its numbers worked out, after it has made its result: by the kernels of the place where the
// result is. On the dry device all of these do nothing.
#pragma once

#include <vector>

#include "tensor/context.h"
#include "tensor/kernels.h"

namespace qlp {

/// A tensor as a kernel sees it; one that is not defined is not given.
inline Array array_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.data(), tensor.dtype(), tensor.shape(), tensor.strides()};
}

inline void fill(Context& ctx, const Tensor& out, double value) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->fill(ctx.stream, array_of(out), value);
}
inline void fill_causal_band(Context& ctx, const Tensor& out, std::int64_t window, double inside, double outside) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->causal_band(ctx.stream, array_of(out), window, inside, outside);
}
inline void fill_range(Context& ctx, const Tensor& out, double start = 0) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->arange(ctx.stream, array_of(out), start);
}
inline void compute(Context& ctx, Unary op, const Tensor& out, const Tensor& x, double p = 0, double q = 0) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->unary(ctx.stream, op, array_of(out), array_of(x), p, q);
}
inline void compute(Context& ctx, Binary op, const Tensor& out, const Tensor& x, const Tensor& y, double p = 1) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->binary(ctx.stream, op, array_of(out), array_of(x), array_of(y), p);
}
inline void compute(Context& ctx, Reduce op, const Tensor& out, const Tensor& x, double factor = 1) {
  if (Kernels* kernels = ctx.kernels(out)) kernels->reduce(ctx.stream, op, array_of(out), array_of(x), factor);
}
/// What copies from one place to another; none where there is nothing to copy.
inline Kernels* copying_kernels(const Context& ctx, const Tensor& out, const Tensor& in) {
  return ctx.kernels(in) ? ctx.kernels(out.on_host() ? in : out) : nullptr;
}
/// out = in, cast and broadcast; also from one place to another. What is nowhere has nothing to give.
inline void copy_into(Context& ctx, const Tensor& out, const Tensor& in) {
  if (Kernels* kernels = copying_kernels(ctx, out, in))
    kernels->unary(ctx.stream, Unary::copy, array_of(out), array_of(in), 0, 0);
}
/// The elements of `in` in row-major order, as those of `out`, which may have another shape.
void copy_elements(Context& ctx, const Tensor& out, const Tensor& in);
/// Rows of a table by an index of any rank: out [index.., ..]; both lie densely.
void gather_rows(Context& ctx, const Tensor& out, const Tensor& table, const Tensor& index);
/// out [n, ..] becomes the sum of `rows` [index.., ..] by their index.
void scatter_rows(Context& ctx, const Tensor& out, const Tensor& rows, const Tensor& index);
/// The next numbers of the context's sequence, for the samples of this rank: a sequence of all ranks' samples would be
/// the same.
struct Draw {
  std::uint64_t key = 0, first = 0;
};
Draw next_draw(Context& ctx, const Tensor& out);
/// A number over the whole of a tensor, into one of one element of any rank.
void reduce_all(Context& ctx, Reduce op, const Tensor& out, const Tensor& x, double factor = 1);
/// Numbers of the process, in the dtype of `out` (int64 or float32).
void upload(Context& ctx, const Tensor& out, const std::vector<double>& values);
/// The first element, once the device has come so far; 0 where nothing computes.
double item(Context& ctx, const Tensor& tensor);

}  // namespace qlp

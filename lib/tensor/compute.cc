#include "tensor/compute.h"

#include <array>
#include <cstring>
#include <stdexcept>

#include "tensor/number.h"
#include "tensor/random.h"

namespace qlp {
namespace {

/// The same elements as one dimension, or none where they do not lie in one run.
Array in_one_dimension(const Array& array) {
  return {array.data, array.dtype, {array.numel()}, contiguous_strides({array.numel()})};
}

bool dense(const Array& array) { return is_contiguous(array.shape, array.strides); }

/// A dense tensor as seen in another shape.
Array in_shape(const Array& array, const Shape& shape) {
  return {array.data, array.dtype, shape, contiguous_strides(shape)};
}

}  // namespace

void copy_elements(Context& ctx, const Tensor& out, const Tensor& in) {
  Kernels* const kernels = copying_kernels(ctx, out, in);
  if (!kernels) return;
  Array to = array_of(out), from = array_of(in);
  if (to.shape != from.shape) {
    if (dense(to))
      to = in_shape(to, from.shape);
    else if (dense(from))
      from = in_shape(from, to.shape);
    else
      throw std::logic_error("a copy between two shapes, neither of which lies densely");
  }
  kernels->unary(ctx.stream, Unary::copy, to, from, 0, 0);
}

namespace {

/// Rows of an array whose first dimensions are those of an index, as one dimension.
Array by_index(const Array& array, const Array& index) {
  Shape rows{index.numel()};
  for (int dim = static_cast<int>(index.shape.rank()); dim < static_cast<int>(array.shape.rank()); ++dim)
    rows.push_back(array.size(dim));
  return in_shape(array, rows);
}

}  // namespace

void gather_rows(Context& ctx, const Tensor& out, const Tensor& table, const Tensor& index) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels) return;
  const Array at = array_of(index);
  kernels->gather_rows(ctx.stream, by_index(array_of(out), at), array_of(table), at);
}

void scatter_rows(Context& ctx, const Tensor& out, const Tensor& rows, const Tensor& index) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels) return;
  const Array at = array_of(index);
  if (!rows.contiguous()) throw std::logic_error("rows that do not lie densely");
  kernels->fill(ctx.stream, array_of(out), 0);
  kernels->scatter_add_rows(ctx.stream, array_of(out), by_index(array_of(rows), at), at);
}

Draw next_draw(Context& ctx, const Tensor& out) {
  const std::uint64_t key = random_key(ctx.random.seed, ++ctx.random.calls);
  return {key, static_cast<std::uint64_t>(ctx.random.replica * out.numel())};
}

void reduce_all(Context& ctx, Reduce op, const Tensor& out, const Tensor& x, double factor) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels) return;
  Array from = array_of(x), to = in_one_dimension(array_of(out));
  if (dense(from)) from = in_one_dimension(from);
  Shape ones;
  for (std::size_t i = 0; i < from.shape.rank(); ++i) ones.push_back(1);
  to = in_shape(to, ones);
  kernels->reduce(ctx.stream, op, to, from, factor);
}

void upload(Context& ctx, const Tensor& out, const std::vector<double>& values) {
  Kernels* const kernels = ctx.kernels(out);
  if (!kernels) return;
  std::vector<std::byte> bytes(values.size() * size_of(out.dtype()));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_number(bytes.data() + i * size_of(out.dtype()), out.dtype(), values[i]);
  kernels->upload(ctx.stream, out.data(), bytes.data(), bytes.size());
}

double item(Context& ctx, const Tensor& tensor) {
  Kernels* const kernels = ctx.kernels(tensor);
  if (!kernels) return 0;
  std::array<std::byte, 8> bytes{};
  kernels->download(ctx.stream, bytes.data(), tensor.data(), size_of(tensor.dtype()));
  if (!ctx.device.compute().answers) return 0;  // what is there was copied in earlier, or is nothing
  return load_number(bytes.data(), tensor.dtype());
}

}  // namespace qlp

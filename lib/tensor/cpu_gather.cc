#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// One row of an array, whose first dimension is gone.
Array row_of(const Array& array, std::int64_t row) {
  Array out{array.data + row * array.stride(0) * static_cast<std::int64_t>(size_of(array.dtype)), array.dtype, {}, {}};
  for (int dim = 1; dim < static_cast<int>(array.shape.rank()); ++dim) {
    out.strides[out.shape.rank()] = array.stride(dim);
    out.shape.push_back(array.size(dim));
  }
  return out;
}

/// Element `i` of an index of any rank that lies densely.
std::int64_t index_at(const Array& index, std::int64_t i, std::int64_t rows) {
  const auto at = load_as<std::int64_t>(index.data + i * static_cast<std::int64_t>(sizeof(std::int64_t)));
  if (at < 0 || at >= rows) throw std::logic_error("an index outside of the table");
  return at;
}

}  // namespace

void CpuKernels::gather_rows(StreamId stream, const Array& out, const Array& table, const Array& index) {
  require_memory(index);
  for (std::int64_t i = 0; i < index.numel(); ++i)
    unary(stream, Unary::copy, row_of(out, i), row_of(table, index_at(index, i, table.size(0))), 0, 0);
}

void CpuKernels::scatter_add_rows(StreamId stream, const Array& out, const Array& rows, const Array& index) {
  require_memory(index);
  const Array* sums = &out;
  std::vector<float> wide;  // 16-bit sums would lose what they are given one by one
  Array in_float;
  if (size_of(out.dtype) < sizeof(float)) {
    wide.resize(static_cast<std::size_t>(out.numel()));
    in_float = {reinterpret_cast<std::byte*>(wide.data()), DType::float32, out.shape, contiguous_strides(out.shape)};
    unary(stream, Unary::copy, in_float, out, 0, 0);
    sums = &in_float;
  }
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    const Array sum = row_of(*sums, index_at(index, i, out.size(0)));
    binary(stream, Binary::add, sum, sum, row_of(rows, i), 1);
  }
  if (sums != &out) unary(stream, Unary::copy, out, in_float, 0, 0);
}

}  // namespace qlp

#include <cmath>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

double joined(Reduce op, double sum, double value) {
  switch (op) {
    case Reduce::sum:
      return sum + value;
    case Reduce::sum_of_squares:
      return sum + value * value;
    case Reduce::max:  // no number stays
      return value > sum || std::isnan(value) ? value : sum;
    case Reduce::max_abs:
      return std::abs(value) > sum || std::isnan(value) ? std::abs(value) : sum;
  }
  return sum;
}

}  // namespace

// Results are collected in memory that is laid out as the operand is walked: row by row, each row onto one result or
// onto a row of them.
void CpuKernels::reduce(StreamId, Reduce op, const Array& out, const Array& x, double factor) {
  const double start = op == Reduce::max ? -INFINITY : 0;
  std::vector<double> sums(static_cast<std::size_t>(out.numel()), start);
  const Array into{reinterpret_cast<std::byte*>(sums.data()), DType::float64, out.shape, contiguous_strides(out.shape)};
  const std::array<const Array*, 2> arrays{&x, &into};
  const Rows<2> rows = rows_of(arrays);
  std::array<double, kChunk> values;
  for_each_row(arrays, rows, [&](const auto& at) {
    for (std::int64_t from = 0; from < rows.length; from += kChunk) {
      const std::int64_t n = std::min(kChunk, rows.length - from);
      load_row(values.data(), at[0] + from * rows.inner[0], x.dtype, rows.inner[0], n);
      for (std::int64_t i = 0; i < n; ++i) {
        auto& sum = *reinterpret_cast<double*>(at[1] + (from + i) * rows.inner[1]);
        sum = joined(op, sum, values[static_cast<std::size_t>(i)]);
      }
    }
  });
  if (factor != 1)
    for (double& sum : sums) sum *= factor;
  unary(0, Unary::copy, out, into, 0, 0);
}

void CpuKernels::flag_non_finite(StreamId, const Array& flag, const Array& x) {
  require_memory(flag);
  const std::array<const Array*, 1> arrays{&x};
  const Rows<1> rows = rows_of(arrays);
  bool finite = true;
  for_each_row(arrays, rows, [&](const auto& at) {
    for (std::int64_t i = 0; i < rows.length; ++i)
      finite = finite && std::isfinite(load_number(at[0] + i * rows.inner[0], x.dtype));
  });
  if (!finite) store_as(flag.data, 1.0F);
}

}  // namespace qlp

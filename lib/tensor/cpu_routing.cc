#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// The elements of a tensor that lies densely.
template <class T>
std::vector<T> elements(const Array& array) {
  require_memory(array);
  if (!is_contiguous(array.shape, array.strides)) throw std::logic_error("elements that do not lie densely");
  std::vector<T> out(static_cast<std::size_t>(array.numel()));
  load_row(out.data(), array.data, array.dtype, static_cast<std::int64_t>(size_of(array.dtype)), array.numel());
  return out;
}

template <class T>
void store(const Array& array, const std::vector<T>& from) {
  require_memory(array);
  store_row(array.data, array.dtype, static_cast<std::int64_t>(size_of(array.dtype)), from.data(), array.numel());
}

/// Rows `from` to `to` of the first dimension.
Array rows(const Array& array, std::int64_t from, std::int64_t to) {
  Array out = array;
  out.data += from * array.stride(0) * static_cast<std::int64_t>(size_of(array.dtype));
  out.shape = array.shape.with(0, to - from);
  return out;
}

Array matrix(const Array& array, std::int64_t i) {
  const Array one = rows(array, i, i + 1);
  return {one.data, one.dtype, {array.size(1), array.size(2)}, {array.stride(1), array.stride(2)}};
}

Array transposed(const Array& array) {
  return {array.data, array.dtype, {array.size(1), array.size(0)}, {array.stride(1), array.stride(0)}};
}

/// Calls f(group, first row, row past the last).
template <class F>
void for_each_group(const Array& ends, F&& f) {
  std::int64_t from = 0, group = 0;
  for (const std::int64_t to : elements<std::int64_t>(ends)) {
    f(group++, from, to);
    from = to;
  }
}

}  // namespace

void CpuKernels::topk(StreamId, const Array& values, const Array& indices, const Array& x) {
  const std::int64_t width = x.size(-1), k = values.size(-1);
  const std::vector<double> all = elements<double>(x);
  std::vector<double> best;
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < x.numel() / width; ++row) {
    const double* const of_row = all.data() + row * width;
    std::vector<std::int64_t> order(static_cast<std::size_t>(width));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return of_row[a] > of_row[b]; });
    for (std::int64_t i = 0; i < k; ++i) {
      places.push_back(order[static_cast<std::size_t>(i)]);
      best.push_back(of_row[places.back()]);
    }
  }
  store(values, best), store(indices, places);
}

void CpuKernels::gather_last(StreamId, const Array& out, const Array& x, const Array& indices) {
  const std::int64_t width = x.size(-1), k = out.size(-1);
  const std::vector<double> all = elements<double>(x);
  const std::vector<std::int64_t> at = elements<std::int64_t>(indices);
  std::vector<double> picked;
  for (std::size_t i = 0; i < at.size(); ++i)
    picked.push_back(all.at(static_cast<std::size_t>(static_cast<std::int64_t>(i) / k * width + at[i])));
  store(out, picked);
}

void CpuKernels::scatter_last(StreamId, const Array& out, const Array& values, const Array& indices) {
  const std::int64_t width = out.size(-1), k = values.size(-1);
  const std::vector<double> from = elements<double>(values);
  const std::vector<std::int64_t> at = elements<std::int64_t>(indices);
  std::vector<double> all(static_cast<std::size_t>(out.numel()), 0.0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / k;
    all.at(static_cast<std::size_t>(row * width + at[i])) = from[i];
  }
  store(out, all);
}

void CpuKernels::gather_elements(StreamId, const Array& out, const Array& x, const Array& rows, const Array& columns) {
  const std::vector<double> all = elements<double>(x);
  const auto row = elements<std::int64_t>(rows), column = elements<std::int64_t>(columns);
  std::vector<double> picked;
  for (std::size_t i = 0; i < row.size(); ++i)
    picked.push_back(all.at(static_cast<std::size_t>(row[i] * x.size(-1) + column[i])));
  store(out, picked);
}

void CpuKernels::put_elements(StreamId, const Array& out, const Array& values, const Array& rows,
                              const Array& columns) {
  const std::vector<double> from = elements<double>(values);
  const auto row = elements<std::int64_t>(rows), column = elements<std::int64_t>(columns);
  std::vector<double> all(static_cast<std::size_t>(out.numel()), 0.0);
  for (std::size_t i = 0; i < from.size(); ++i)
    all.at(static_cast<std::size_t>(row[i] * out.size(-1) + column[i])) = from[i];
  store(out, all);
}

void CpuKernels::sort(StreamId, const Array& values, const Array& order, const Array& x) {
  const std::vector<std::int64_t> keys = elements<std::int64_t>(x);
  std::vector<std::int64_t> places(keys.size()), sorted;
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const auto key = [&](std::int64_t place) { return keys[static_cast<std::size_t>(place)]; };
  std::ranges::stable_sort(places, {}, key);
  std::ranges::transform(places, std::back_inserter(sorted), key);
  store(values, sorted), store(order, places);
}

void CpuKernels::divide(StreamId, const Array& out, const Array& x, std::int64_t divisor) {
  std::vector<std::int64_t> numbers = elements<std::int64_t>(x);
  for (std::int64_t& number : numbers) number /= divisor;
  store(out, numbers);
}

void CpuKernels::count_groups(StreamId, const Array& counts, const Array& ends, const Array& keys) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(counts.numel()), 0), end(count.size());
  for (const std::int64_t key : elements<std::int64_t>(keys)) ++count.at(static_cast<std::size_t>(key));
  std::partial_sum(count.begin(), count.end(), end.begin());
  store(counts, count), store(ends, end);
}

void CpuKernels::grouped_gemm(StreamId, const Array& out, const Array& a, const Array& b, const Array& ends) {
  for_each_group(ends, [&](std::int64_t group, std::int64_t from, std::int64_t to) {
    if (from < to) gemm(0, rows(out, from, to), rows(a, from, to), matrix(b, group), 1, 0);
  });
}

void CpuKernels::grouped_outer(StreamId, const Array& out, const Array& a, const Array& b, const Array& ends) {
  for_each_group(ends, [&](std::int64_t group, std::int64_t from, std::int64_t to) {
    if (from < to)
      gemm(0, matrix(out, group), transposed(rows(a, from, to)), rows(b, from, to), 1, 0);
    else
      fill(0, matrix(out, group), 0);
  });
}

void CpuKernels::quantize_rows_8bit(StreamId, const Array& out, const Array& scales, const Array& x) {
  constexpr double kMost = 127;
  const std::int64_t width = x.size(-1);
  std::vector<double> numbers = elements<double>(x), greatest(static_cast<std::size_t>(scales.numel()), 0.0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& most = greatest[i / static_cast<std::size_t>(width)];
    most = std::max(most, std::abs(numbers[i]));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double most = greatest[i / static_cast<std::size_t>(width)];
    numbers[i] = most > 0 ? std::nearbyint(numbers[i] * kMost / most) : 0;
  }
  store(scales, greatest), store(out, numbers);
}

}  // namespace qlp

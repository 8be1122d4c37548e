#include <cstring>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"
#include "tensor/random.h"

namespace qlp {
namespace {

/// Calls value(i) for every element, i in row-major order.
template <class F>
void fill_by_index(const Array& out, F&& value) {
  using namespace cpu;
  const std::array<const Array*, 1> arrays{&out};
  const Rows<1> rows = rows_of(arrays);
  std::uint64_t next = 0;
  with_writer(out.dtype, [&](auto&& write) {
    for_each_row(arrays, rows, [&](const auto& at) {
      for (std::int64_t i = 0; i < rows.length; ++i) write(at[0] + i * rows.inner[0], value(next++));
    });
  });
}

}  // namespace

void CpuKernels::fill(StreamId, const Array& out, double value) {
  fill_by_index(out, [value](std::uint64_t) { return value; });
}

void CpuKernels::arange(StreamId, const Array& out, double start) {
  fill_by_index(out, [start](std::uint64_t i) { return start + static_cast<double>(i); });
}

void CpuKernels::causal_band(StreamId, const Array& out, std::int64_t window, double inside, double outside) {
  const auto rows = static_cast<std::uint64_t>(out.size(-2)), columns = static_cast<std::uint64_t>(out.size(-1));
  fill_by_index(out, [=](std::uint64_t at) {
    const auto i = static_cast<std::int64_t>(at / columns % rows), j = static_cast<std::int64_t>(at % columns);
    return j <= i && (window == 0 || i - j < window) ? inside : outside;
  });
}

void CpuKernels::random_uniform(StreamId, const Array& out, std::uint64_t key, std::uint64_t first, double low,
                                double high) {
  fill_by_index(out,
                [=](std::uint64_t i) { return low + (high - low) * static_cast<double>(random_unit(key, first + i)); });
}

void CpuKernels::bernoulli(StreamId, const Array& out, std::uint64_t key, std::uint64_t first, double probability) {
  fill_by_index(
      out, [=](std::uint64_t i) { return static_cast<double>(random_unit(key, first + i)) < probability ? 1.0 : 0.0; });
}

void CpuKernels::upload(StreamId, void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }
void CpuKernels::download(StreamId, void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }
void CpuKernels::poison(StreamId, void* data, std::uint64_t bytes) { std::memset(data, 0xff, bytes); }

}  // namespace qlp

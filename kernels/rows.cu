#include "launch.cuh"
#include "numbers.cuh"
#include "rows.h"

namespace qlp::kernels {
namespace {

/// Element `i` of row `row`, as an offset.
__device__ std::int64_t in_row(const View& view, std::int64_t row, std::int64_t i) {
  View rest = view;
  rest.rank = view.rank - 1;
  for (int d = 0; d < rest.rank; ++d) rest.size[d] = view.size[d + 1], rest.stride[d] = view.stride[d + 1];
  return row * view.stride[0] + offset_of(rest, i, rest.rank);
}

__global__ void gather_kernel(View out, View table, const std::int64_t* index, std::int64_t width) {
  const std::int64_t item = this_item();
  if (item >= out.size[0] * width) return;
  const std::int64_t n = item / width, i = item % width;
  store(out.data, out.type, in_row(out, n, i), load<float>(table.data, table.type, in_row(table, index[n], i)));
}

/// A block for each n: the first that names a row adds all that do.
__global__ void scatter_kernel(View out, View rows, const std::int64_t* index, std::int64_t width) {
  const std::int64_t n = blockIdx.x, row = index[n];
  bool named_before = false;
  for (std::int64_t m = threadIdx.x; m < n && !named_before; m += kThreads) named_before = index[m] == row;
  if (join_block(named_before ? 1 : 0, 0, Max()) != 0) return;
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
    const std::int64_t at = in_row(out, row, i);
    float sum = load<float>(out.data, out.type, at);
    for (std::int64_t m = n; m < rows.size[0]; ++m)
      if (index[m] == row) sum += load<float>(rows.data, rows.type, in_row(rows, m, i));
    store(out.data, out.type, at, sum);
  }
}

std::int64_t width_of(const View& view) { return view.size[0] == 0 ? 0 : view.numel() / view.size[0]; }

}  // namespace

cudaError_t gather_rows(const View& out, const View& table, const std::int64_t* index, cudaStream_t stream) {
  const std::int64_t width = width_of(out);
  return launch_over(out.numel(), gather_kernel, stream, out, table, index, width);
}

cudaError_t scatter_add_rows(const View& out, const View& rows, const std::int64_t* index, cudaStream_t stream) {
  return launch(scatter_kernel, rows.size[0], kThreads, stream, out, rows, index, width_of(rows));
}

}  // namespace qlp::kernels

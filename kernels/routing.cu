#include "launch.cuh"
#include "numbers.cuh"
#include "routing.h"

namespace qlp::kernels {
namespace {

/// A warp for each row: as often as asked for, the greatest of those that come behind the last one.
__global__ void topk_kernel(View values, View indices, View x_view) {
  const Row x = row_of(x_view, blockIdx.x), value = row_of(values, blockIdx.x), index = row_of(indices, blockIdx.x);
  float last = INFINITY;
  std::int64_t last_at = -1;
  for (std::int64_t k = 0; k < value.width; ++k) {
    const auto is_left = [&](std::int64_t i) { return x[i] < last || (x[i] == last && i > last_at); };
    float most = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < x.width; i += kWarp)
      if (is_left(i)) most = fmaxf(most, x[i]);
    most = join_warp(most, Max());
    std::int64_t before = -x.width;  // minus the first of the greatest
    for (std::int64_t i = threadIdx.x; i < x.width; i += kWarp)
      if (is_left(i) && x[i] == most && -i > before) before = -i;
    before = join_warp(before, Max());
    const std::int64_t at = before > -x.width ? -before : k;  // no number is greater than none
    if (threadIdx.x == 0) {
      value.set(k, x[at]);
      store(index.data, index.type, index.base + k * index.stride, at);
    }
    last = most, last_at = at;
  }
}

__global__ void gather_last_kernel(View out, View x_view, View indices, std::int64_t count) {
  const std::int64_t item = this_item();
  if (item >= count) return;
  const std::int64_t k = out.size[out.rank - 1];
  store_at(out, item, row_of(x_view, item / k)[load_at<std::int64_t>(indices, item)]);
}

__global__ void scatter_last_kernel(View out, View values, View indices, std::int64_t count) {
  const std::int64_t item = this_item();
  if (item >= count) return;
  const std::int64_t n = out.size[out.rank - 1], k = values.size[values.rank - 1], row = item / n;
  float value = 0.0F;
  for (std::int64_t i = row * k; i < (row + 1) * k; ++i)
    if (load_at<std::int64_t>(indices, i) == item % n) value = load_at<float>(values, i);
  store_at(out, item, value);
}

__global__ void gather_elements_kernel(View out, View x, const std::int64_t* rows, const std::int64_t* columns,
                                       std::int64_t count) {
  const std::int64_t i = this_item();
  if (i < count) store_at(out, i, load_at<float>(x, rows[i] * x.width() + columns[i]));
}

/// A thread for each row, which looks for what is its own.
__global__ void put_elements_kernel(View out, View values, const std::int64_t* rows, const std::int64_t* columns,
                                    std::int64_t count) {
  const std::int64_t row = this_item(), width = out.width();
  if (row >= out.size[0]) return;
  for (std::int64_t k = 0; k < width; ++k) store_at(out, row * width + k, 0.0F);
  for (std::int64_t i = 0; i < count; ++i)
    if (rows[i] == row) store_at(out, row * width + columns[i], load_at<float>(values, i));
}

__global__ void sort_kernel(std::int64_t* values, std::int64_t* order, const std::int64_t* x, std::int64_t n) {
  const std::int64_t i = this_item();
  __shared__ std::int64_t others[kThreads];
  const std::int64_t own = i < n ? x[i] : 0;
  std::int64_t place = 0;
  for (std::int64_t start = 0; start < n; start += kThreads) {
    const std::int64_t mine = start + threadIdx.x, count = n - start < kThreads ? n - start : kThreads;
    if (mine < n) others[threadIdx.x] = x[mine];
    __syncthreads();
    for (std::int64_t j = 0; j < count; ++j)
      if (others[j] < own || (others[j] == own && start + j < i)) ++place;
    __syncthreads();
  }
  if (i < n) values[place] = own, order[place] = i;
}

__global__ void divide_kernel(std::int64_t* out, const std::int64_t* x, std::int64_t divisor, std::int64_t n) {
  const std::int64_t i = this_item();
  if (i < n) out[i] = x[i] / divisor;
}

/// How many of the ascending keys are below `key`.
__device__ std::int64_t below(const std::int32_t* keys, std::int64_t n, std::int64_t key) {
  std::int64_t low = 0, high = n;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__global__ void count_kernel(std::int32_t* counts, std::int32_t* ends, const std::int32_t* keys, std::int64_t n,
                             std::int64_t groups) {
  const std::int64_t group = this_item();
  if (group >= groups) return;
  const std::int64_t end = below(keys, n, group + 1);
  counts[group] = static_cast<std::int32_t>(end - below(keys, n, group));
  ends[group] = static_cast<std::int32_t>(end);
}

}  // namespace

cudaError_t topk(const View& values, const View& indices, const View& x, cudaStream_t stream) {
  return launch(topk_kernel, x.rows(), kWarp, stream, values, indices, x);
}

cudaError_t gather_last(const View& out, const View& x, const View& indices, cudaStream_t stream) {
  return launch_over(out.numel(), gather_last_kernel, stream, out, x, indices, out.numel());
}

cudaError_t scatter_last(const View& out, const View& values, const View& indices, cudaStream_t stream) {
  return launch_over(out.numel(), scatter_last_kernel, stream, out, values, indices, out.numel());
}

cudaError_t gather_elements(const View& out, const View& x, const std::int64_t* rows, const std::int64_t* columns,
                            cudaStream_t stream) {
  return launch_over(out.numel(), gather_elements_kernel, stream, out, x, rows, columns, out.numel());
}

cudaError_t put_elements(const View& out, const View& values, const std::int64_t* rows, const std::int64_t* columns,
                         cudaStream_t stream) {
  return launch_over(out.size[0], put_elements_kernel, stream, out, values, rows, columns, values.numel());
}

cudaError_t sort(std::int64_t* values, std::int64_t* order, const std::int64_t* x, std::int64_t n,
                 cudaStream_t stream) {
  return launch_over(n, sort_kernel, stream, values, order, x, n);
}

cudaError_t divide(std::int64_t* out, const std::int64_t* x, std::int64_t divisor, std::int64_t n,
                   cudaStream_t stream) {
  return launch_over(n, divide_kernel, stream, out, x, divisor, n);
}

cudaError_t count_groups(std::int32_t* counts, std::int32_t* ends, const std::int32_t* keys, std::int64_t n,
                         std::int64_t groups, cudaStream_t stream) {
  return launch_over(groups, count_kernel, stream, counts, ends, keys, n, groups);
}

}  // namespace qlp::kernels

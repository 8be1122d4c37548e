#include "counter_random.cuh"
#include "fill.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

__global__ void arange_kernel(View out, double start, double step, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i < count) store_at(out, i, start + step * static_cast<double>(i));
}

__global__ void random_kernel(View out, std::uint64_t key, std::uint64_t first, double low, double high,
                              std::int64_t count) {
  const std::int64_t i = this_item();
  if (i < count) store_at(out, i, low + (high - low) * random_unit(key, first + static_cast<std::uint64_t>(i)));
}

__global__ void bernoulli_kernel(View out, std::uint64_t key, std::uint64_t first, double probability,
                                 std::int64_t count) {
  const std::int64_t i = this_item();
  if (i >= count) return;
  const double unit = random_unit(key, first + static_cast<std::uint64_t>(i));
  store_at(out, i, unit < probability ? 1.0F : 0.0F);
}

__global__ void causal_band_kernel(View out, std::int64_t window, double inside, double outside, std::int64_t count) {
  const std::int64_t at = this_item();
  if (at >= count) return;
  const std::int64_t columns = out.size[out.rank - 1], rows = out.size[out.rank - 2];
  const std::int64_t i = at / columns % rows, j = at % columns;
  store_at(out, at, j <= i && (window == 0 || i - j < window) ? inside : outside);
}

}  // namespace

cudaError_t fill(View out, double value, cudaStream_t stream) {
  View views[] = {out};
  join_dimensions(views);
  return launch_over(out.numel(), arange_kernel, stream, views[0], value, 0.0, out.numel());
}

cudaError_t arange(View out, double start, cudaStream_t stream) {
  return launch_over(out.numel(), arange_kernel, stream, out, start, 1.0, out.numel());
}

cudaError_t random_uniform(View out, std::uint64_t key, std::uint64_t first, double low, double high,
                           cudaStream_t stream) {
  return launch_over(out.numel(), random_kernel, stream, out, key, first, low, high, out.numel());
}

cudaError_t bernoulli(View out, std::uint64_t key, std::uint64_t first, double probability, cudaStream_t stream) {
  return launch_over(out.numel(), bernoulli_kernel, stream, out, key, first, probability, out.numel());
}

cudaError_t causal_band(View out, std::int64_t window, double inside, double outside, cudaStream_t stream) {
  return launch_over(out.numel(), causal_band_kernel, stream, out, window, inside, outside, out.numel());
}

}  // namespace qlp::kernels

#include "launch.cuh"
#include "numbers.cuh"
#include "rotary.h"

namespace qlp::kernels {
namespace {

/// A thread for each pair of numbers that turn together.
__global__ void rotate_kernel(View x_view, View cos_view, View sin_view, bool inverse) {
  const std::int64_t half = x_view.width() / 2, item = this_item();
  if (item >= x_view.rows() * half) return;
  const std::int64_t row = item / half, low = item % half, high = low + half;
  const Row x = row_of(x_view, row), cos = row_of(cos_view, row), sin = row_of(sin_view, row);
  const float a = x[low], b = x[high];
  x.set(low, inverse ? a * cos[low] + b * sin[high] : a * cos[low] - b * sin[low]);
  x.set(high, inverse ? b * cos[high] - a * sin[low] : b * cos[high] + a * sin[high]);
}

}  // namespace

cudaError_t rotate_in_place(const View& x, const View& cos, const View& sin, bool inverse, cudaStream_t stream) {
  return launch_over(x.numel() / 2, rotate_kernel, stream, x, cos, sin, inverse);
}

}  // namespace qlp::kernels

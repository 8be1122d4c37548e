#include "launch.cuh"
#include "numbers.cuh"
#include "rms_norm.h"

namespace qlp::kernels {
namespace {

/// A block for each row.
__global__ void rms_norm_kernel(View out_view, float* rstd, View x_view, View gain_view, float eps, float offset) {
  const Row x = row_of(x_view, blockIdx.x), out = row_of(out_view, blockIdx.x), gain = row_of(gain_view, 0);
  float squares = 0.0F;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) squares += x[i] * x[i];
  squares = join_block(squares, 0.0F, Sum());
  const float r = 1.0F / sqrtf(squares / static_cast<float>(x.width) + eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) out.set(i, x[i] * r * (gain[i] + offset));
}

/// With y = x * rstd: dx = rstd * (g - y * mean(g * y)) where g is the gradient times the gain. A block for each row.
__global__ void dx_kernel(View dx_view, View grad_view, View x_view, View gain_view, const float* rstd, float offset) {
  const Row dx = row_of(dx_view, blockIdx.x), grad = row_of(grad_view, blockIdx.x), x = row_of(x_view, blockIdx.x);
  const Row gain = row_of(gain_view, 0);
  const float r = rstd[blockIdx.x];
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) sum += grad[i] * (gain[i] + offset) * x[i] * r;
  const float mean = join_block(sum, 0.0F, Sum()) / static_cast<float>(x.width);
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads)
    dx.set(i, r * (grad[i] * (gain[i] + offset) - x[i] * r * mean));
}

/// A block for 32 columns, a warp for every eighth row.
__global__ void dgain_kernel(View dgain, View grad_view, View x_view, const float* rstd) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float of_warp[kWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane;
  const bool inside = column < x_view.width();
  float sum = 0.0F;
  for (std::int64_t row = warp; inside && row < x_view.rows(); row += kWarps)
    sum += row_of(grad_view, row)[column] * row_of(x_view, row)[column] * rstd[row];
  of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !inside) return;
  for (int w = 1; w < kWarps; ++w) sum += of_warp[w][lane];
  row_of(dgain, 0).set(column, sum);
}

}  // namespace

cudaError_t rms_norm(const View& out, float* rstd, const View& x, const View& gain, double eps, double offset,
                     cudaStream_t stream) {
  return launch(rms_norm_kernel, x.rows(), kThreads, stream, out, rstd, x, gain, static_cast<float>(eps),
                static_cast<float>(offset));
}

cudaError_t rms_norm_backward(const View& dx, const View& dgain, const View& grad, const View& x, const View& gain,
                              const float* rstd, double offset, cudaStream_t stream) {
  if (dgain.data != nullptr) {  // first: dx may take the place of grad
    const std::int64_t blocks = (x.width() + kWarp - 1) / kWarp;
    const cudaError_t status = launch(dgain_kernel, blocks, kThreads, stream, dgain, grad, x, rstd);
    if (status != cudaSuccess) return status;
  }
  return launch(dx_kernel, x.rows(), kThreads, stream, dx, grad, x, gain, rstd, static_cast<float>(offset));
}

}  // namespace qlp::kernels

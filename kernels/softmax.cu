#include "launch.cuh"
#include "numbers.cuh"
#include "softmax.h"

namespace qlp::kernels {
namespace {

// A block for each row.

__global__ void softmax_kernel(View out_view, View x_view, bool log) {
  const Row x = row_of(x_view, blockIdx.x), out = row_of(out_view, blockIdx.x);
  float most = -INFINITY, total = 0.0F;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) most = fmaxf(most, x[i]);
  most = join_block(most, -INFINITY, Max());
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) total += expf(x[i] - most);
  total = join_block(total, 0.0F, Sum());
  const float log_total = logf(total);
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads)
    out.set(i, log ? x[i] - most - log_total : expf(x[i] - most) / total);
}

__global__ void softmax_backward_kernel(View out_view, View grad_view, View y_view, bool log) {
  const Row out = row_of(out_view, blockIdx.x), grad = row_of(grad_view, blockIdx.x), y = row_of(y_view, blockIdx.x);
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < y.width; i += kThreads) sum += log ? grad[i] : grad[i] * y[i];
  sum = join_block(sum, 0.0F, Sum());
  for (std::int64_t i = threadIdx.x; i < y.width; i += kThreads)
    out.set(i, log ? grad[i] - expf(y[i]) * sum : y[i] * (grad[i] - sum));
}

}  // namespace

cudaError_t softmax(const View& out, const View& x, bool log, cudaStream_t stream) {
  return launch(softmax_kernel, x.rows(), kThreads, stream, out, x, log);
}

cudaError_t softmax_backward(const View& out, const View& grad, const View& y, bool log, cudaStream_t stream) {
  return launch(softmax_backward_kernel, y.rows(), kThreads, stream, out, grad, y, log);
}

}  // namespace qlp::kernels

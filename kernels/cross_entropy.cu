#include "cross_entropy.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

__device__ std::int64_t label_of(const View& labels, std::int64_t n) {
  return static_cast<const std::int64_t*>(labels.data)[n * labels.stride[0]];
}

/// One block.
__global__ void nll_kernel(View loss, View total_weight, View log_probabilities, View labels, bool mean) {
  float sum = 0.0F, counted = 0.0F;
  for (std::int64_t n = threadIdx.x; n < labels.size[0]; n += kThreads) {
    const std::int64_t label = label_of(labels, n);
    if (label < 0) continue;
    sum -= row_of(log_probabilities, n)[label];
    counted += 1.0F;
  }
  sum = join_block(sum, 0.0F, Sum()), counted = join_block(counted, 0.0F, Sum());
  if (threadIdx.x != 0) return;
  store(loss.data, loss.type, 0, mean ? sum / counted : sum);
  store(total_weight.data, total_weight.type, 0, counted);
}

__global__ void nll_backward_kernel(View out, View grad, View labels, View total_weight, bool mean) {
  const std::int64_t item = this_item(), width = out.size[1];
  if (item >= out.size[0] * width) return;
  const std::int64_t n = item / width, column = item % width;
  float value = 0.0F;
  if (label_of(labels, n) == column) {
    value = -load<float>(grad.data, grad.type, 0);
    if (mean) value /= load<float>(total_weight.data, total_weight.type, 0);
  }
  row_of(out, n).set(column, value);
}

/// A block for each row.
__global__ void cross_entropy_kernel(View losses, View logits, View labels) {
  const Row row = row_of(logits, blockIdx.x);
  const std::int64_t label = label_of(labels, blockIdx.x);
  float most = -INFINITY, total = 0.0F;
  for (std::int64_t i = threadIdx.x; i < row.width; i += kThreads) most = fmaxf(most, row[i]);
  most = join_block(most, -INFINITY, Max());
  for (std::int64_t i = threadIdx.x; i < row.width; i += kThreads) total += expf(row[i] - most);
  total = join_block(total, 0.0F, Sum());
  if (threadIdx.x == 0)
    store(losses.data, losses.type, blockIdx.x * losses.stride[0], label < 0 ? 0.0F : most + logf(total) - row[label]);
  __syncthreads();  // the logit of the label has been read
  for (std::int64_t i = threadIdx.x; i < row.width; i += kThreads)
    row.set(i, label < 0 ? 0.0F : expf(row[i] - most) / total - (i == label ? 1.0F : 0.0F));
}

}  // namespace

cudaError_t nll_loss(const View& loss, const View& total_weight, const View& log_probabilities, const View& labels,
                     bool mean, cudaStream_t stream) {
  return launch(nll_kernel, 1, kThreads, stream, loss, total_weight, log_probabilities, labels, mean);
}

cudaError_t nll_loss_backward(const View& out, const View& grad, const View& labels, const View& total_weight,
                              bool mean, cudaStream_t stream) {
  return launch_over(out.numel(), nll_backward_kernel, stream, out, grad, labels, total_weight, mean);
}

cudaError_t cross_entropy_in_place(const View& losses, const View& logits, const View& labels, cudaStream_t stream) {
  return launch(cross_entropy_kernel, logits.size[0], kThreads, stream, losses, logits, labels);
}

}  // namespace qlp::kernels

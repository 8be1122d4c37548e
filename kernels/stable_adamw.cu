#include <cmath>

#include "launch.cuh"
#include "numbers.cuh"
#include "stable_adamw.h"

namespace qlp::kernels {
namespace {

struct Step {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps, lr, weight_decay;
};

/// Averages, and of a block's elements the sum of squared gradients over what the averages say of them.
__global__ void average_kernel(View grad, View exp_avg, View exp_avg_sq, Step step, float* sums, std::int64_t count) {
  float sum = 0.0F;
  for (std::int64_t i = this_item(); i < count; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const float g = load<float>(grad.data, grad.type, i);
    const float first = load<float>(exp_avg.data, exp_avg.type, i) * step.beta1 + g * step.one_minus_beta1;
    const float second = load<float>(exp_avg_sq.data, exp_avg_sq.type, i) * step.beta2 + g * g * step.one_minus_beta2;
    store(exp_avg.data, exp_avg.type, i, first);
    store(exp_avg_sq.data, exp_avg_sq.type, i, second);
    sum += g * g / fmaxf(second, step.eps * step.eps);
  }
  sum = join_block(sum, 0.0F, Sum());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// The rate falls where gradients are larger than their averages say. Every block sums up the parts anew.
__global__ void update_kernel(View parameter, View exp_avg, View exp_avg_sq, View compensation, bool compensates,
                              Step step, const float* sums, std::int64_t parts, std::int64_t count) {
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < parts; i += blockDim.x) sum += sums[i];
  sum = join_block(sum, 0.0F, Sum());
  const float rate = step.lr / fmaxf(1.0F, sqrtf(sum / static_cast<float>(count)));
  const std::int64_t i = this_item();
  if (i >= count) return;
  const float first = load<float>(exp_avg.data, exp_avg.type, i);
  const float second = load<float>(exp_avg_sq.data, exp_avg_sq.type, i);
  const float before = load<float>(parameter.data, parameter.type, i) * (1.0F - rate * step.weight_decay);
  float change = -rate * (first / (sqrtf(second) + step.eps));
  if (compensates) change += load<float>(compensation.data, compensation.type, i);
  store(parameter.data, parameter.type, i, before + change);
  if (!compensates) return;
  const float after = load<float>(parameter.data, parameter.type, i);
  store(compensation.data, compensation.type, i, change + (before - after));
}

}  // namespace

cudaError_t stable_adamw(const View& parameter, const View& grad, const View& exp_avg, const View& exp_avg_sq,
                         const View& compensation, const AdamWNumbers& n, float* scratch, cudaStream_t stream) {
  const std::int64_t count = parameter.numel();
  const auto at = static_cast<double>(n.step);
  const auto unbiased = [at](double beta) {
    const double power = std::pow(beta, at);
    return (power - beta) / (power - 1.0);
  };
  const double beta1 = unbiased(n.beta1), beta2 = unbiased(n.beta2);
  const Step step{static_cast<float>(beta1),         static_cast<float>(1.0 - beta1), static_cast<float>(beta2),
                  static_cast<float>(1.0 - beta2),   static_cast<float>(n.eps),       static_cast<float>(n.lr),
                  static_cast<float>(n.weight_decay)};
  std::int64_t parts = (count + kThreads - 1) / kThreads;
  if (parts > kStableAdamWScratch) parts = kStableAdamWScratch;
  const cudaError_t status =
      launch(average_kernel, parts, kThreads, stream, grad, exp_avg, exp_avg_sq, step, scratch, count);
  if (status != cudaSuccess) return status;
  const bool compensates = compensation.type == parameter.type;
  return launch_over(count, update_kernel, stream, parameter, exp_avg, exp_avg_sq, compensation, compensates, step,
                     scratch, parts, count);
}

}  // namespace qlp::kernels

#include <cmath>

#include "adamw.h"
#include "launch.cuh"
#include "nearest_code.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

/// What all elements of a step have in common, worked out in double.
struct Step {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float decay;            ///< factor of the parameter
  float step_size;        ///< of the bias-corrected first moment
  float root_correction;  ///< sqrt(1 - beta2^step)
};

Step step_of(const AdamWNumbers& numbers) {
  const auto step = static_cast<double>(numbers.step);
  return {static_cast<float>(numbers.beta1),
          static_cast<float>(1.0 - numbers.beta1),
          static_cast<float>(numbers.beta2),
          static_cast<float>(1.0 - numbers.beta2),
          static_cast<float>(numbers.eps),
          static_cast<float>(1.0 - numbers.lr * numbers.weight_decay),
          static_cast<float>(numbers.lr / (1.0 - std::pow(numbers.beta1, step))),
          static_cast<float>(std::sqrt(1.0 - std::pow(numbers.beta2, step)))};
}

/// What the moments take from the parameter.
__device__ float change(const Step& step, float first, float second) {
  return step.step_size * (first / (sqrtf(second) / step.root_correction + step.eps));
}

__global__ void adamw_kernel(View parameter, View grad, View exp_avg, View exp_avg_sq, Step step, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i >= count) return;
  const float g = load<float>(grad.data, grad.type, i);
  const float before = load<float>(exp_avg.data, exp_avg.type, i);
  const float first = before + (g - before) * step.one_minus_beta1;
  const float second = load<float>(exp_avg_sq.data, exp_avg_sq.type, i) * step.beta2 + g * g * step.one_minus_beta2;
  store(exp_avg.data, exp_avg.type, i, first);
  store(exp_avg_sq.data, exp_avg_sq.type, i, second);
  store(parameter.data, parameter.type, i,
        load<float>(parameter.data, parameter.type, i) * step.decay - change(step, first, second));
}

constexpr int kMostOfThread = 8;  ///< elements of a block of 2048

/// The code of a value over `most`.
__device__ std::uint8_t requantized(const QuantizedMoment& moment, float value, float most) {
  return static_cast<std::uint8_t>(nearest_code(moment.code, most > 0.0F ? value / most : 0.0F));
}

/// One block of threads for each block of numbers: a moment's greatest value is known before its codes are written.
__global__ void adamw_8bit_kernel(View parameter, View grad, QuantizedMoment m, QuantizedMoment v,
                                  std::int64_t blocksize, Step step, std::int64_t count) {
  const std::int64_t begin = blockIdx.x * blocksize + threadIdx.x;
  const std::int64_t end = (blockIdx.x + 1) * blocksize < count ? (blockIdx.x + 1) * blocksize : count;
  const float old_first = m.absmax[blockIdx.x], old_second = v.absmax[blockIdx.x];
  float first[kMostOfThread], second[kMostOfThread], most_first = 0.0F, most_second = 0.0F;
  int kept = 0;
  for (std::int64_t i = begin; i < end; i += kThreads, ++kept) {
    const float g = load<float>(grad.data, grad.type, i);
    first[kept] = m.code[m.codes[i]] * old_first * step.beta1 + g * step.one_minus_beta1;
    second[kept] = v.code[v.codes[i]] * old_second * step.beta2 + g * g * step.one_minus_beta2;
    most_first = fmaxf(most_first, fabsf(first[kept])), most_second = fmaxf(most_second, fabsf(second[kept]));
  }
  most_first = join_block(most_first, 0.0F, Max());  // all threads have read the old ones
  most_second = join_block(most_second, 0.0F, Max());
  if (threadIdx.x == 0) m.absmax[blockIdx.x] = most_first, v.absmax[blockIdx.x] = most_second;
  kept = 0;
  for (std::int64_t i = begin; i < end; i += kThreads, ++kept) {
    store(parameter.data, parameter.type, i,
          (load<float>(parameter.data, parameter.type, i) - change(step, first[kept], second[kept])) * step.decay);
    std::uint8_t code = requantized(m, first[kept], most_first);
    if (signbit(m.code[code]) != signbit(first[kept])) code += first[kept] > 0.0F ? 1 : -1;  // keeps its sign
    m.codes[i] = code;
    v.codes[i] = requantized(v, second[kept], most_second);
  }
}

}  // namespace

cudaError_t adamw(const View& parameter, const View& grad, const View& exp_avg, const View& exp_avg_sq,
                  const AdamWNumbers& numbers, cudaStream_t stream) {
  const std::int64_t count = parameter.numel();
  return launch_over(count, adamw_kernel, stream, parameter, grad, exp_avg, exp_avg_sq, step_of(numbers), count);
}

cudaError_t adamw_8bit(const View& parameter, const View& grad, const QuantizedMoment& exp_avg,
                       const QuantizedMoment& exp_avg_sq, std::int64_t blocksize, const AdamWNumbers& numbers,
                       cudaStream_t stream) {
  if (blocksize > kMostOfThread * static_cast<std::int64_t>(kThreads)) return cudaErrorInvalidValue;
  const std::int64_t count = parameter.numel(), blocks = (count + blocksize - 1) / blocksize;
  return launch(adamw_8bit_kernel, blocks, kThreads, stream, parameter, grad, exp_avg, exp_avg_sq, blocksize,
                step_of(numbers), count);
}

}  // namespace qlp::kernels

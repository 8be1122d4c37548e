#include <cmath>

#include "adamw_4bit.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

struct Step {
  float one_minus_beta1, one_minus_beta2, eps, decay, step_size, root_correction;
};

/// The nearest of 16 ascending values, the upper one of two that are as near.
__device__ unsigned nearest_of_16(const float* code, float x) {
  unsigned below = 0;
  for (unsigned step = 8; step > 0; step /= 2)
    if (x >= code[below + step]) below += step;
  const unsigned above = below < 15 ? below + 1 : 15;
  return x - code[below] >= (code[above] - code[below]) * 0.5F ? above : below;
}

/// Both numbers of a byte.
struct Pair {
  float high, low;
};
__device__ Pair unpacked(const PackedMoment& moment, std::int64_t byte, float scale) {
  const unsigned codes = moment.codes[byte];
  return {moment.code[codes >> 4] * scale, moment.code[codes & 15U] * scale};
}
__device__ void pack(const PackedMoment& moment, std::int64_t byte, const Pair& numbers, float scale) {
  const unsigned high = nearest_of_16(moment.code, numbers.high / scale);
  const unsigned low = nearest_of_16(moment.code, numbers.low / scale);
  moment.codes[byte] = static_cast<std::uint8_t>(high << 4 | low);
}

constexpr int kMostPairs = 4;          ///< of a thread
constexpr float kLeastScale = 1e-12F;  ///< scale_tensor's clip

/// A block of threads for each block of numbers, a thread for two of them that share bytes.
__global__ void adamw_4bit_kernel(View parameter, View grad, PackedMoment m, PackedMoment v, std::int64_t blocksize,
                                  Step step) {
  const std::int64_t begin = blockIdx.x * (blocksize / 2) + threadIdx.x, end = (blockIdx.x + 1) * (blocksize / 2);
  const float old_first = m.absmax[blockIdx.x], old_second = v.absmax[blockIdx.x];
  Pair first[kMostPairs], second[kMostPairs];
  float most_first = 0.0F, most_second = 0.0F;
  int n = 0;
  const auto update = [&](std::int64_t i, float& m_i, float& v_i) {
    const float g = load<float>(grad.data, grad.type, i);
    m_i += (g - m_i) * step.one_minus_beta1, v_i += (g * g - v_i) * step.one_minus_beta2;
    most_first = fmaxf(most_first, fabsf(m_i)), most_second = fmaxf(most_second, fabsf(v_i));
    const float p = load<float>(parameter.data, parameter.type, i) * step.decay;
    store(parameter.data, parameter.type, i,
          p - step.step_size * (m_i / (sqrtf(v_i) / step.root_correction + step.eps)));
  };
  for (std::int64_t byte = begin; byte < end; byte += kThreads, ++n) {
    first[n] = unpacked(m, byte, old_first), second[n] = unpacked(v, byte, old_second);
    update(2 * byte, first[n].high, second[n].high);
    update(2 * byte + 1, first[n].low, second[n].low);
  }
  most_first = fmaxf(join_block(most_first, 0.0F, Max()), kLeastScale);  // all threads have read the old ones
  most_second = fmaxf(join_block(most_second, 0.0F, Max()), kLeastScale);
  if (threadIdx.x == 0) m.absmax[blockIdx.x] = most_first, v.absmax[blockIdx.x] = most_second;
  n = 0;
  for (std::int64_t byte = begin; byte < end; byte += kThreads, ++n) {
    pack(m, byte, first[n], most_first);
    pack(v, byte, second[n], most_second);
  }
}

}  // namespace

cudaError_t adamw_4bit(const View& parameter, const View& grad, const PackedMoment& exp_avg,
                       const PackedMoment& exp_avg_sq, std::int64_t blocksize, const AdamWNumbers& numbers,
                       cudaStream_t stream) {
  const std::int64_t count = parameter.numel();
  if (blocksize % 2 != 0 || blocksize > std::int64_t{2} * kMostPairs * kThreads || count % blocksize != 0)
    return cudaErrorInvalidValue;
  const auto at = static_cast<double>(numbers.step);
  const Step step{static_cast<float>(1.0 - numbers.beta1),
                  static_cast<float>(1.0 - numbers.beta2),
                  static_cast<float>(numbers.eps),
                  static_cast<float>(1.0 - numbers.lr * numbers.weight_decay),
                  static_cast<float>(numbers.lr / (1.0 - std::pow(numbers.beta1, at))),
                  static_cast<float>(std::sqrt(1.0 - std::pow(numbers.beta2, at)))};
  return launch(adamw_4bit_kernel, count / blocksize, kThreads, stream, parameter, grad, exp_avg, exp_avg_sq, blocksize,
                step);
}

}  // namespace qlp::kernels

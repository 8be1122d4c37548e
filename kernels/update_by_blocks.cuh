// One step of an optimizer whose averages may be codes: block by block, as a block's greatest value must be known
// before its codes are written (bitsandbytes csrc/kernels.cu, kOptimizer32bit1State,
// kOptimizerStatic8bit1StateBlockwise and those for two states).
#pragma once

#include "averages.h"
#include "launch.cuh"
#include "nearest_code.cuh"
#include "numbers.cuh"

namespace qlp::kernels {

inline constexpr int kMostOfThread = 8;  ///< elements of a block of 2048
inline constexpr std::int64_t kMostOfBlock = kMostOfThread * std::int64_t{kThreads};

template <int kCount>
struct Averages {
  Average at[kCount];
};

/// Element `i` of `block`.
__device__ inline float read_average(const Average& average, std::int64_t i, std::int64_t block) {
  return average.numbers ? average.numbers[i] : average.code[average.codes[i]] * average.absmax[block];
}

/// A code of a signed table never changes the sign of its number.
__device__ inline void write_average(const Average& average, std::int64_t i, float value, float most) {
  if (average.numbers) {
    average.numbers[i] = value;
    return;
  }
  int code = nearest_code(average.code, most > 0.0F ? value / most : 0.0F);
  if (average.is_signed && signbit(average.code[code]) != signbit(value)) code += value > 0.0F ? 1 : code > 0 ? -1 : 0;
  average.codes[i] = static_cast<std::uint8_t>(code);
}

/// `rule(p, g, averages)` changes the averages of an element of gradient g and gives what p becomes.
template <class Rule>
__global__ void update_kernel(View parameter, View grad, Averages<Rule::kAverages> averages, std::int64_t blocksize,
                              Rule rule, std::int64_t count) {
  const std::int64_t begin = blockIdx.x * blocksize + threadIdx.x;
  const std::int64_t end = (blockIdx.x + 1) * blocksize < count ? (blockIdx.x + 1) * blocksize : count;
  float kept[kMostOfThread][Rule::kAverages], most[Rule::kAverages] = {};
  int n = 0;
  for (std::int64_t i = begin; i < end; i += kThreads, ++n) {
    for (int a = 0; a < Rule::kAverages; ++a) kept[n][a] = read_average(averages.at[a], i, blockIdx.x);
    const float p = load<float>(parameter.data, parameter.type, i);
    store(parameter.data, parameter.type, i, rule(p, load<float>(grad.data, grad.type, i), kept[n]));
    for (int a = 0; a < Rule::kAverages; ++a) most[a] = fmaxf(most[a], fabsf(kept[n][a]));
  }
  for (int a = 0; a < Rule::kAverages; ++a) {
    if (averages.at[a].numbers) continue;
    most[a] = join_block(most[a], 0.0F, Max());  // all threads have read the old ones
    if (threadIdx.x == 0) averages.at[a].absmax[blockIdx.x] = most[a];
  }
  n = 0;
  for (std::int64_t i = begin; i < end; i += kThreads, ++n)
    for (int a = 0; a < Rule::kAverages; ++a) write_average(averages.at[a], i, kept[n][a], most[a]);
}

/// blocksize: at most 2048, of the codes; where averages are numbers any will do.
template <class Rule>
cudaError_t update_by_blocks(const View& parameter, const View& grad, const Averages<Rule::kAverages>& averages,
                             std::int64_t blocksize, const Rule& rule, cudaStream_t stream) {
  if (blocksize > kMostOfBlock) return cudaErrorInvalidValue;
  const std::int64_t count = parameter.numel(), blocks = (count + blocksize - 1) / blocksize;
  return launch(update_kernel<Rule>, blocks, kThreads, stream, parameter, grad, averages, blocksize, rule, count);
}

}  // namespace qlp::kernels

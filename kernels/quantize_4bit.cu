#include "launch.cuh"
#include "numbers.cuh"
#include "quantize_4bit.h"

namespace qlp::kernels {
namespace {

/// The nearest code of NF4: how many of the middles between neighbours lie below (bitsandbytes csrc/kernels.cu,
/// dQuantizeNF4).
__device__ unsigned nearest_nf4(float x) {
  constexpr float kMiddles[] = {
      -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
      -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
      0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784181118011F};
  unsigned code = 0;
#pragma unroll
  for (const float middle : kMiddles) code += x > middle ? 1U : 0U;
  return code;
}

/// The nearest code of FP4, of a sign and 3 bits that are not in the order of their values (dQuantizeFP4).
__device__ unsigned nearest_fp4(float x) {
  const unsigned sign = x < 0.0F ? 8U : 0U;
  const float size = fabsf(x);
  if (size > 0.8333333F) return sign + 3U;
  if (size > 0.583333F) return sign + 2U;
  if (size > 0.4166667F) return sign + 5U;
  if (size > 0.29166667F) return sign + 4U;
  if (size > 0.20833333F) return sign + 7U;
  if (size > 0.0859375F) return sign + 6U;
  return sign + (size > 0.00260417F ? 1U : 0U);
}

/// A warp for each block of weights, a lane for two neighbours at a time.
__global__ void quantize_kernel(std::uint8_t* packed, float* absmax, View x, std::int64_t count, std::int64_t blocksize,
                                bool nf4) {
  const std::int64_t block = this_item() / kWarp, begin = block * blocksize;
  if (begin >= count) return;  // the whole warp
  const std::int64_t end = begin + blocksize < count ? begin + blocksize : count;
  const unsigned lane = threadIdx.x % kWarp;
  float most = 0.0F;
  for (std::int64_t i = begin + lane; i < end; i += kWarp) most = fmaxf(most, fabsf(load<float>(x.data, x.type, i)));
  most = join_warp(most, Max());
  if (lane == 0) absmax[block] = most;
  const float inverse = most > 0.0F ? 1.0F / most : 0.0F;
  const auto nearest = [&](std::int64_t i) {
    const float value = i < count ? load<float>(x.data, x.type, i) * inverse : 0.0F;
    return nf4 ? nearest_nf4(value) : nearest_fp4(value);
  };
  for (std::int64_t i = begin + std::int64_t{2} * lane; i < end; i += std::int64_t{2} * kWarp)
    packed[i / 2] = static_cast<std::uint8_t>(nearest(i) << 4U | nearest(i + 1));
}

/// A thread for each byte.
__global__ void dequantize_kernel(View out, const std::uint8_t* packed, const float* absmax, const float* code,
                                  std::int64_t count, std::int64_t blocksize) {
  const std::int64_t i = 2 * this_item();
  if (i >= count) return;
  const float scale = absmax[i / blocksize];
  const unsigned both = packed[i / 2];
  store(out.data, out.type, i, code[both >> 4U] * scale);
  if (i + 1 < count) store(out.data, out.type, i + 1, code[both & 15U] * scale);
}

}  // namespace

cudaError_t quantize_4bit(void* packed, float* absmax, const View& x, std::int64_t blocksize, bool nf4,
                          cudaStream_t stream) {
  const std::int64_t count = x.numel(), blocks = (count + blocksize - 1) / blocksize;
  return launch_over(blocks * kWarp, quantize_kernel, stream, static_cast<std::uint8_t*>(packed), absmax, x, count,
                     blocksize, nf4);
}

cudaError_t dequantize_4bit(const View& out, const void* packed, const float* absmax, const float* code,
                            std::int64_t blocksize, cudaStream_t stream) {
  const std::int64_t count = out.numel();
  return launch_over((count + 1) / 2, dequantize_kernel, stream, out, static_cast<const std::uint8_t*>(packed), absmax,
                     code, count, blocksize);
}

}  // namespace qlp::kernels

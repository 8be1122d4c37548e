#include "launch.cuh"
#include "nearest_code.cuh"
#include "numbers.cuh"
#include "quantize_8bit.h"

namespace qlp::kernels {
namespace {

/// One block of threads for each block of numbers.
__global__ void quantize_kernel(std::uint8_t* out, float* absmax, const float* code, View x, std::int64_t count,
                                std::int64_t blocksize) {
  const std::int64_t begin = blockIdx.x * blocksize, end = begin + blocksize < count ? begin + blocksize : count;
  float most = 0.0F;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    most = fmaxf(most, fabsf(load<float>(x.data, x.type, i)));
  most = join_block(most, 0.0F, Max());
  if (threadIdx.x == 0) absmax[blockIdx.x] = most;
  const float inverse = most > 0.0F ? 1.0F / most : 0.0F;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    out[i] = static_cast<std::uint8_t>(nearest_code(code, load<float>(x.data, x.type, i) * inverse));
}

__global__ void dequantize_kernel(View out, const std::uint8_t* codes, const float* absmax, const float* code,
                                  std::int64_t count, std::int64_t blocksize) {
  const std::int64_t i = this_item();
  if (i < count) store(out.data, out.type, i, code[codes[i]] * absmax[i / blocksize]);
}

/// A block for each row (bitsandbytes csrc/kernels.cu, kInt8VectorQuant).
__global__ void quantize_rows_kernel(std::int8_t* out, float* scales, View x_view) {
  constexpr float kMost = 127.0F;
  const Row x = row_of(x_view, blockIdx.x);
  float most = 0.0F;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads) most = fmaxf(most, fabsf(x[i]));
  most = join_block(most, 0.0F, Max());
  if (threadIdx.x == 0) scales[blockIdx.x] = most;
  for (std::int64_t i = threadIdx.x; i < x.width; i += kThreads)
    out[blockIdx.x * x.width + i] = most > 0.0F ? static_cast<std::int8_t>(rintf(x[i] * kMost / most)) : 0;
}

}  // namespace

cudaError_t quantize_8bit(std::uint8_t* out, float* absmax, const float* code, const View& x, std::int64_t blocksize,
                          cudaStream_t stream) {
  const std::int64_t count = x.numel(), blocks = (count + blocksize - 1) / blocksize;
  return launch(quantize_kernel, blocks, kThreads, stream, out, absmax, code, x, count, blocksize);
}

cudaError_t quantize_rows_8bit(std::int8_t* out, float* scales, const View& x, cudaStream_t stream) {
  return launch(quantize_rows_kernel, x.rows(), kThreads, stream, out, scales, x);
}

cudaError_t dequantize_8bit(const View& out, const std::uint8_t* codes, const float* absmax, const float* code,
                            std::int64_t blocksize, cudaStream_t stream) {
  return launch_over(out.numel(), dequantize_kernel, stream, out, codes, absmax, code, out.numel(), blocksize);
}

}  // namespace qlp::kernels

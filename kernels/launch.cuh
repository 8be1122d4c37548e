// How kernels are launched, and how the threads of a block work together.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace qlp::kernels {

inline constexpr unsigned kThreads = 256;  ///< of a block, where nothing speaks for another number
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// One block of `threads` for each of `blocks`; nothing to do for none.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), std::int64_t blocks, unsigned threads, cudaStream_t stream,
                   const Arguments&... arguments) {
  if (blocks == 0) return cudaSuccess;
  if (blocks < 0 || blocks > 0x7fffffff) return cudaErrorInvalidValue;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/// One thread for each of `items`.
template <class... Parameters, class... Arguments>
cudaError_t launch_over(std::int64_t items, void (*kernel)(Parameters...), cudaStream_t stream,
                        const Arguments&... arguments) {
  return launch(kernel, (items + kThreads - 1) / kThreads, kThreads, stream, arguments...);
}

/// The item of this thread under launch_over(), which may lie past the last one.
__device__ inline std::int64_t this_item() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

/// Joins one value of each lane of a warp; every lane gets the result, always in the same order of operations.
template <class T, class Join>
__device__ T join_warp(T value, Join join) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// The same for all threads of a block (whole warps, at most 32 of them).
template <class T, class Join>
__device__ T join_block(T value, T neutral, Join join) {
  __shared__ T of_warp[kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = join_warp(value, join);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = join_warp(lane < blockDim.x / kWarp ? of_warp[lane] : neutral, join);
  __syncthreads();  // before the next call writes of_warp
  return value;
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

}  // namespace qlp::kernels

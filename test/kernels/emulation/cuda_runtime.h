// Device code on the host, so that every kernel runs where there is no GPU: kernels/*.cu are compiled as C++ with this
// header in place of CUDA's. A launch runs block after block; the threads of a block are fibers (emulation.cc) that
// give way to each other at __syncthreads and at warp shuffles. What a GPU would leave undefined ends the launch with
// an exception: a barrier that not all threads reach, a shuffle that not the whole warp takes part in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>  // overloads for float and double in the global namespace, as CUDA has them
#include <type_traits>

#include <cuda_runtime_api.h>

// NOLINTBEGIN: the names are CUDA's
#define __global__
#define __forceinline__ inline
#define __shared__ static  // blocks run one at a time
#define __launch_bounds__(...)

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

// Of the thread that runs now.
inline dim3 threadIdx, blockIdx, blockDim, gridDim;
// NOLINTEND

namespace emulation {

/// The order in which threads and blocks come to run. A kernel whose result depends on it has a race.
enum class Order { forward, backward, shuffled };
void set_order(Order order);

void launch(dim3 grid, dim3 block, const std::function<void()>& kernel);
void block_barrier();
/// Offers `value` to the other lanes of the warp, and gives that of `lane`, once all have come here.
std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned lane);
/// Of the thread that runs, within its warp.
unsigned lane();

template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulation

inline void __syncthreads() { emulation::block_barrier(); }

template <class T>
T __shfl_sync(unsigned mask, T value, int from) {
  return emulation::shuffle(mask, value, static_cast<unsigned>(from));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return emulation::shuffle(mask, value, emulation::lane() ^ static_cast<unsigned>(bits));
}

inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
// Rounded once each, never fused into another operation.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  emulation::launch(config->gridDim, config->blockDim, [&] { kernel(static_cast<Parameters>(arguments)...); });
  return cudaSuccess;
}

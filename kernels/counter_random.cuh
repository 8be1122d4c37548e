// Random numbers from a counter, bit for bit those of the host's generator: SplitMix64 (Steele, Lea, Flood: Fast
// splittable pseudorandom number generators, OOPSLA 2014).
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace qlp::kernels {

/// Element `index` of the sequence `key`: in [0, 1), of 24 bits.
__device__ inline float random_unit(std::uint64_t key, std::uint64_t index) {
  std::uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-24F;
}

}  // namespace qlp::kernels

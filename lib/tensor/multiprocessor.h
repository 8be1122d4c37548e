// Limits of a GPU's multiprocessors, from which kernels work out how they share their work.
#pragma once

#include <cstdint>

namespace qlp {

/// maxThreadsPerMultiProcessor (CUDA C++ Programming Guide, table of technical specifications per compute capability).
constexpr std::int64_t threads_per_multiprocessor(std::uint32_t compute_capability) {
  switch (compute_capability) {
    case 75:
      return 1024;
    case 86:
    case 87:
    case 89:
    case 110:
    case 120:
    case 121:
      return 1536;
    default:
      return 2048;
  }
}

}  // namespace qlp

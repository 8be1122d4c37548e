// What CUDA and its libraries could not do.
#pragma once

#include <stdexcept>

namespace qlp {

/// CUDA, cuBLAS or NCCL failed, or another rank did not answer in time.
struct GpuFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace qlp

// What CUDA and its libraries could not do.
#pragma once

#include <stdexcept>

namespace qlp {

/// CUDA, cuBLAS or NCCL failed.
struct GpuFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// NCCL failed, or another rank did not come in time.
struct CommunicatorFailure : GpuFailure {
  using GpuFailure::GpuFailure;
};

}  // namespace qlp

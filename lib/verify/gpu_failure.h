// What CUDA and its libraries could not do.
#pragma once

#include <stdexcept>

namespace qlp {

/// CUDA, cuBLAS or NCCL failed.
struct GpuFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The device has no memory left for what is not the allocator's: handles, scratch.
struct DeviceFull : GpuFailure {
  using GpuFailure::GpuFailure;
};

/// NCCL failed, or another rank did not come in time.
struct CommunicatorFailure : GpuFailure {
  using GpuFailure::GpuFailure;
};

}  // namespace qlp

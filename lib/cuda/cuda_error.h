// A call of CUDA that failed.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "verify/gpu_failure.h"

namespace qlp {

struct CudaError : GpuFailure {
  CudaError(cudaError_t status, const std::string& what)
      : GpuFailure(what + ": " + cudaGetErrorString(status)), code(status) {}
  cudaError_t code;
};

/// Throws DeviceFull or CudaError, with what was tried.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaErrorMemoryAllocation) throw DeviceFull(std::string(what) + ": " + cudaGetErrorString(status));
  if (status != cudaSuccess) throw CudaError(status, what);
}

}  // namespace qlp

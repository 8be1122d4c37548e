// What the null GPU is told to look like.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/environment.h"
#include "plan/job_spec.h"

namespace qlp {

struct NullGpu {
  GpuSpec gpu;
  std::int64_t devices = 1;
  Bytes taken;  ///< of the capacity of each device, by what the program knows nothing of
};

/// The variables that say so (nullgpu/nullgpu.h).
Environment null_gpu_variables(const NullGpu& null_gpu);

}  // namespace qlp

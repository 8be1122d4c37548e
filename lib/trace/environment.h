// The environment in which a program meets the null GPU and the probe instead of a real one.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/environment.h"
#include "plan/job_spec.h"

namespace qlp {

/// Files of an installation.
struct TraceFiles {
  std::string library;  ///< libqlora_nullgpu.so
  std::string driver;   ///< folder with links to it under the names that are looked for in folders; may not exist
  std::string probe;    ///< folder that comes first on PYTHONPATH
  std::string request;  ///< what the probe is asked
};

struct NullGpu {
  GpuSpec gpu;
  std::int64_t devices = 1;
  Bytes taken;  ///< of the capacity of each device, by what is not PyTorch's, and as margin
};

/// An environment with what preloads the library and starts the probe; the user's own entries of lists stay, behind
/// ours.
Environment traced_environment(Environment environment, const TraceFiles& files, const NullGpu& null_gpu);

}  // namespace qlp

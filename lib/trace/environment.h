// The environment in which a program meets the null GPU and the probe instead of a real one.
#pragma once

#include <string>

#include "base/environment.h"
#include "trace/null_gpu.h"

namespace qlp {

/// Files of an installation.
struct TraceFiles {
  std::string library;  ///< libqlora_nullgpu.so
  std::string driver;   ///< folder with links to it under the names that are looked for in folders; may not exist
  std::string probe;    ///< folder that comes first on PYTHONPATH
  std::string request;  ///< what the probe is asked
};

/// An environment with what preloads the library and starts the probe; the user's own entries of lists stay, behind
/// ours.
Environment traced_environment(Environment environment, const TraceFiles& files, const NullGpu& null_gpu);

}  // namespace qlp

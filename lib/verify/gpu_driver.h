// Whether this machine has an NVIDIA driver and GPUs, asked without making a context on any of them.
#pragma once

#include <string>

#include "base/result.h"

namespace qlp {

/// How many GPUs the driver shows to this process. The error says what is missing.
Result<int, std::string> count_gpus();

}  // namespace qlp

// Where this program is, with which variables, and the files that belong to it: in a build tree and installed alike.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"

namespace qlp::app {

inline constexpr std::string_view kCudaLibrary = "libqlora_cuda.so";
inline constexpr std::string_view kNullGpuLibrary = "libqlora_nullgpu.so";

std::string executable_path();
Environment environment_of_process();

/// <program>/../lib/qlora-plan/<name>
std::string program_file(std::string_view name);

}  // namespace qlp::app

#include "verify/gpu.h"

#include <dlfcn.h>

namespace qlp {

Result<std::unique_ptr<Gpu>, std::string> open_gpu(const std::string& path, const GpuOptions& options) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Unexpected{std::string(dlerror())};
  const auto open = reinterpret_cast<OpenGpu>(dlsym(library, kOpenGpu));
  if (!open) return Unexpected{path + " is not the library of this program"};
  std::string error;
  std::unique_ptr<Gpu> gpu(open(options, error));
  if (!gpu) return Unexpected{std::move(error)};
  return gpu;
}

}  // namespace qlp

#include "verify/gpu_driver.h"

#include <dlfcn.h>

namespace qlp {

Result<int, std::string> count_gpus() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return Unexpected{std::string{"no NVIDIA driver: libcuda.so.1 is not there"}};
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto count_of = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  if (!init || !count_of) return Unexpected{std::string{"libcuda.so.1 is no NVIDIA driver"}};
  constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
  int count = 0;
  int status = init(0);
  if (status == 0) status = count_of(&count);
  if (status == kNoDevice || (status == 0 && count == 0)) return Unexpected{std::string{"the driver shows no GPU"}};
  if (status != 0)
    return Unexpected{"the NVIDIA driver does not start: error " + std::to_string(status) + " of cuInit"};
  return count;
}

}  // namespace qlp

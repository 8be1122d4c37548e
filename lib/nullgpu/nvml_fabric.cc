// NVML: whether a GPU's NVLinks reach those of other machines (GB200 NVL72). None of these do.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nullgpu/entry.h"
#include "nullgpu/settings.h"

using namespace nullgpu;

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kHopper = 90;  // older ones do not know the question

// nvmlGpuFabricInfoV_t (nvml.h of CUDA 12.4 to 13.x): its version, and what follows up to the state, which is "not
// supported"; the clique and health after it say nothing then.
struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

}  // namespace

QLP_EXPORT int nvmlDeviceGetGpuFabricInfoV(void* device, void* out) {
  return query(__func__, [&] {
    if (settings().compute_capability < kHopper) {
      return kNotSupported;
    }
    if (device == nullptr || out == nullptr) {
      return kInvalidArgument;
    }
    constexpr std::size_t kAnswer = offsetof(FabricInfo, state) + 1;
    std::memset(static_cast<char*>(out) + sizeof(unsigned), 0, kAnswer - sizeof(unsigned));
    return 0;
  });
}

#include "cuda/nvml.h"

#include <array>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

namespace qlp {
namespace {

// nvml.h is not a part of the toolkit; these are its declarations (12.x and 13.x).
constexpr int kSuccess = 0, kInsufficientSize = 7;
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ULL;

template <class... Arguments>
int call(void* library, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  return function ? function(arguments...) : -1;
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) return;
  if (call(library_, "nvmlInit_v2") != kSuccess) {
    dlclose(library_);
    library_ = nullptr;
    return;
  }
  if (call(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device_) != kSuccess) device_ = nullptr;
}

Nvml::~Nvml() {
  if (!library_) return;
  call(library_, "nvmlShutdown");
  dlclose(library_);
}

std::optional<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!library_ ||
      call(library_, "nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size())) != kSuccess)
    return std::nullopt;
  return std::string(text.data());
}

std::optional<NvmlProcesses> Nvml::processes() const {
  if (!device_) return std::nullopt;
  std::vector<Process> all(64);
  int status = kInsufficientSize;
  unsigned count = 0;
  for (int attempt = 0; attempt < 4 && status == kInsufficientSize; ++attempt) {
    all.resize(all.size() * 2);
    count = static_cast<unsigned>(all.size());
    status = call(library_, "nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, all.data());
  }
  if (status != kSuccess) return std::nullopt;
  all.resize(count);
  NvmlProcesses result;
  for (const Process& process : all) {
    if (process.used_memory == kNotAvailable) continue;
    if (process.pid == static_cast<unsigned>(getpid()))
      result.own = process.used_memory;
    else
      result.others += process.used_memory;
  }
  return result;
}

}  // namespace qlp

// What the driver's management library tells. It is opened at run time: machines without a driver have none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qlp {

/// Memory of the processes on one GPU.
struct NvmlProcesses {
  std::optional<std::uint64_t> own;  ///< none where the driver does not tell, or not under our number (containers)
  std::uint64_t others = 0;
};

class Nvml {
 public:
  /// Of the GPU with this PCI address ("0000:17:00.0"). Where the library is missing nothing is known.
  explicit Nvml(const std::string& pci_bus_id);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  std::optional<std::string> driver_version() const;
  std::optional<NvmlProcesses> processes() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace qlp

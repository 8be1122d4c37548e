// What the environment says about the null GPU; nullgpu.h lists the variables. Read once, at the first use.
#pragma once

#include <cstddef>
#include <string>

namespace nullgpu {

struct Settings {
  int devices;
  std::string name;
  int compute_capability;  // 80
  int multiprocessors;
  std::size_t l2_bytes;
  int clock_khz;
  int memory_khz;
  int bus_bits;
  std::size_t bytes;          // as cudaMemGetInfo
  std::size_t nvml_bytes;     // as NVML
  std::size_t context_bytes;  // taken by the first use of a device
  int driver_version;         // 13020
  bool lazy_events;
  std::size_t copy_max;
  std::string fail;
  std::string report;
  bool real_ranks;   // the other ranks are processes of this machine
  bool listens;      // rank 0 has to find NCCL_COMM_ID on this machine
  int nccl_version;  // 0: that of the library which is loaded
  std::string visible_devices;
  bool has_visible_devices;
};

const Settings& settings();

}  // namespace nullgpu

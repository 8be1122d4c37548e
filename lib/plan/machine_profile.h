// What was measured on one machine (verify --calibrate): it takes the place of what the catalogue and models say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace qlp {

/// What a communicator of so many ranks took on each of its devices, its first collective included.
struct MeasuredNccl {
  std::int64_t ranks = 2;
  std::int64_t ranks_per_node = 2;
  bool all_reduce = false;  ///< one that also reduces to all, as DDP's does
  Bytes memory;
  friend bool operator==(const MeasuredNccl&, const MeasuredNccl&) = default;
};

struct MachineProfile {
  std::string gpu;                    ///< as the driver calls it
  Bytes capacity;                     ///< cudaMemGetInfo's total
  std::vector<std::string> versions;  ///< "driver 580.65.06", "NCCL 2.28.9"
  std::string time, host;             ///< when and where, with --stamp; else empty
  Bytes cuda_context;
  Bytes cublas;            ///< its handles
  Bytes library_overhead;  ///< what else a step leaves beside the allocator: loaded kernels
  std::vector<MeasuredNccl> nccl;
  friend bool operator==(const MachineProfile&, const MachineProfile&) = default;
};

}  // namespace qlp

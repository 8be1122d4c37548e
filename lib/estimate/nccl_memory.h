// Device memory of one NCCL communicator, from the formulas of its source.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "plan/job_spec.h"

namespace qlp {

/// How the GPUs of a node reach each other.
enum class GpuLink : std::uint8_t { nvlink, pcie, host_memory };

/// What decides the memory of a communicator on one of its ranks.
struct CommunicatorSpec {
  Version torch;  ///< brings its NCCL
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  GpuLink link = GpuLink::nvlink;
  std::uint32_t compute_capability = 80;
  bool all_reduce = false;  ///< DDP; FSDP gathers and scatters only
};

struct CommunicatorMemory {
  Bytes bytes;
  std::string source;  ///< the terms of the sum, and where they are from
};

/// On one rank.
CommunicatorMemory communicator_memory(const CommunicatorSpec& spec);

/// The link of a catalogue GPU; of an unknown one what its chip is usually sold with.
GpuLink link_of(const GpuSpec& gpu);

}  // namespace qlp

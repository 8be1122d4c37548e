// What one rank measured while it ran the step. Plain values, which go from the rank to its launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "estimate/rank_ledger.h"

namespace qlp {

/// The counters of the allocator over one phase of the run.
struct MeasuredPhase {
  std::string name;  ///< as in the timeline: "load", "micro1.backward", ...
  LedgerFigures peak, held;
  friend bool operator==(const MeasuredPhase&, const MeasuredPhase&) = default;
};

/// The device's books at one point of the run.
struct DeviceReading {
  std::string point;  ///< "context", "cublas", "nccl", "first_collective", "step1", "step2", "sampled_peak"
  Bytes used;         ///< of the whole device
  Bytes segments;     ///< of our allocator at that moment, a part of `used`
  std::optional<Bytes> by_process;  ///< of this process alone, where the driver tells
  std::string source;               ///< "cudaMemGetInfo"
  friend bool operator==(const DeviceReading&, const DeviceReading&) = default;
};

/// A communicator, and what the device lost to it.
struct MeasuredCommunicator {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  bool all_reduce = false;
  Bytes bytes;  ///< its making and its first collective
  friend bool operator==(const MeasuredCommunicator&, const MeasuredCommunicator&) = default;
};

/// What it ran on.
struct MeasuredDevice {
  std::string name;  ///< "NVIDIA H200", "cpu"
  std::string host;
  std::optional<Bytes> capacity;        ///< cudaMemGetInfo's total
  std::optional<Bytes> used_by_others;  ///< before the run, by other processes
  std::vector<std::string> versions;    ///< "driver 580.65.06", "NCCL 2.28.9"
  friend bool operator==(const MeasuredDevice&, const MeasuredDevice&) = default;
};

struct RankMeasurement {
  MeasuredDevice device;
  std::vector<MeasuredPhase> phases;
  std::vector<DeviceReading> readings;
  std::vector<MeasuredCommunicator> communicators;
  Bytes managed_state;  ///< of the optimizer, in memory that CUDA moves between GPU and host
  std::vector<double> losses;
  std::vector<double> gradient_norms;
  std::vector<std::int64_t> skipped_steps;  ///< counted from 1: a gradient had overflowed, nothing was updated
  friend bool operator==(const RankMeasurement&, const RankMeasurement&) = default;
};

}  // namespace qlp

// What one optimizer step asks of a rank's links and units, and the time that it takes at least. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tensor/work.h"

namespace qlp {

/// The collectives of one kind over one group in an optimizer step.
struct CollectiveTotal {
  Collective kind = Collective::all_reduce;
  RankGroup group;
  std::uint64_t count = 0;
  Bytes payload;  ///< CollectiveEvent::bytes, summed
  Bytes sent;     ///< by this rank, as a ring of the group sends them
};

struct Communication {
  std::vector<CollectiveTotal> collectives;  ///< those that send most first
  Bytes sent;
  Bytes host_to_device, device_to_host;  ///< batches and offloaded tensors
};

/// Seconds that each resource is busy at least.
struct TimeTerms {
  double compute = 0;        ///< matrix products at the peak rate of their dtype
  double memory = 0;         ///< weights, gradients and optimizer state at the memory's bandwidth
  double communication = 0;  ///< collectives, one after the other, at the links' bandwidth
  double host_copies = 0;    ///< over PCIe, both directions at once
  /// If they overlap completely.
  double longest() const { return std::max({compute, memory, communication, host_copies}); }
  friend bool operator==(const TimeTerms&, const TimeTerms&) = default;
};

/// One phase of the step; phases wait for each other.
struct PhaseTime {
  std::string phase;       ///< the glossary's word
  std::int64_t times = 1;  ///< how often it comes in the step
  TimeTerms terms;         ///< each time
};

/// No step is faster; real ones take longer, as no kernel reaches the peak rates.
struct StepTime {
  double lower_bound = 0;         ///< of all phases, the longest term of each
  TimeTerms terms;                ///< over the whole step
  Operations operations{};        ///< over the whole step
  Bytes memory;                   ///< read and written, likewise
  std::vector<PhaseTime> phases;  ///< in order, as far as there is work; phases alike are one
};

}  // namespace qlp

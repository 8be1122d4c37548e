// What a dry run asks the allocator for at most, between its first forward pass and its last step.
#pragma once

#include <algorithm>
#include <cstdint>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"

namespace qlp::test {

/// In bytes, on one GPU.
inline std::uint64_t requested_peak(const JobSpec& job) {
  const auto run = dry_run(job, Single{}, 0);
  REQUIRE(run);
  std::uint64_t most = 0;
  for (const Phase& phase : run->timeline.phases())
    if (phase.name.starts_with("micro") || phase.name.starts_with("step")) most = std::max(most, phase.requested.bytes);
  return most;
}

}  // namespace qlp::test

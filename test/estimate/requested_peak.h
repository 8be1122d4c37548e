// What a dry run asks the allocator for between its first forward pass and its last step.
#pragma once

#include <algorithm>
#include <cstdint>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"

namespace qlp::test {

/// Requested bytes: the most in training, and what is left after the last step.
struct Figures {
  std::uint64_t peak = 0, held = 0;
  bool operator==(const Figures&) const = default;
};

/// Of the first rank.
inline Figures figures(const JobSpec& job, const ShardingPlan& plan) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  Figures out;
  for (const Phase& phase : run->timeline.phases()) {
    if (!phase.name.starts_with("micro") && !phase.name.starts_with("step")) continue;
    out.peak = std::max(out.peak, phase.requested.bytes);
    out.held = phase.end.requested.current;
  }
  return out;
}

/// On one GPU.
inline std::uint64_t requested_peak(const JobSpec& job) { return figures(job, Single{}).peak; }

}  // namespace qlp::test

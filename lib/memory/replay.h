// A recorded run once more, with an allocator that has less memory: does it still run, and with how little?
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/allocator_config.h"
#include "memory/caching_allocator.h"
#include "memory/memory_stats.h"
#include "memory/timeline.h"

namespace qlp {

struct ReplayOutcome {
  std::optional<std::uint32_t> died_at;  ///< the event for which no memory was left; none: the run came to its end
  MemoryStats stats;                     ///< peaks and counts of the whole run, or up to there
  std::vector<MemoryStats> phases;       ///< the same of each phase of the timeline, as far as it came

  bool runs() const { return !died_at.has_value(); }
};

/// Runs the events of `timeline` through an allocator over `limit` bytes of segments. The device appears to have
/// exactly these, which is what a memory fraction in `config` refers to.
ReplayOutcome replay(const Timeline& timeline, const AllocatorConfig& config, std::uint64_t limit,
                     EventPolicy policy = EventPolicy::ready_at_once);

/// The least bytes of segments with which the run still comes to its end, to 2 MiB: above what is allocated, and at
/// most what it reserves when nothing limits it. Found by bisection, as if more memory never did harm.
std::uint64_t least_memory(const Timeline& timeline, const AllocatorConfig& config,
                           EventPolicy policy = EventPolicy::ready_at_once);

}  // namespace qlp

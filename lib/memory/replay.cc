#include "memory/replay.h"

#include <algorithm>
#include <vector>

#include "base/rounding.h"
#include "memory/segment_source.h"

namespace qlp {
namespace {

/// What a driver gives memory in.
constexpr std::uint64_t kStep = std::uint64_t{2} << 20;

/// What the program asks for with this device below it.
std::uint64_t requested_with(const CounterSource& source, const Timeline& timeline, AllocationId id) {
  std::uint64_t bytes = timeline.requested_of(id);
  for (const DeviceSizedAllocation& sized : timeline.device_sized()) {
    if (sized.id != id) continue;
    const std::uint64_t memory =
        sized.of == DeviceSizedAllocation::Of::capacity ? source.capacity() : source.capacity() - source.used();
    bytes = std::min(bytes, (memory - std::min(memory, sized.kept)) / sized.divisor);
  }
  return bytes;
}

/// Adds the peaks of the phase that ends to the outcome, and starts the next one.
void close_phase(CachingAllocator& allocator, ReplayOutcome& outcome) {
  const MemoryStats phase = allocator.stats();
  MemoryStats whole = phase;
  const auto keep_peak = [&](MemoryStats::Figure MemoryStats::*figure) {
    (whole.*figure).peak = std::max((phase.*figure).peak, (outcome.stats.*figure).peak);
  };
  keep_peak(&MemoryStats::requested), keep_peak(&MemoryStats::allocated);
  keep_peak(&MemoryStats::active), keep_peak(&MemoryStats::reserved);
  outcome.stats = whole;
  outcome.phases.push_back(phase);
  allocator.reset_peaks();
}

}  // namespace

ReplayOutcome replay(const Timeline& timeline, const AllocatorConfig& config, std::uint64_t limit, EventPolicy policy) {
  CounterSource source(limit);
  CachingAllocator allocator(config, source, policy);
  std::vector<Block*> blocks(timeline.allocation_count(), nullptr);
  ReplayOutcome outcome;
  for (std::uint32_t i = 0; i < timeline.event_count() && outcome.runs(); ++i) {
    const auto [kind, index] = timeline.event(i);
    switch (kind) {
      case TimelineEvent::Kind::allocate:
        try {
          const std::uint64_t bytes = requested_with(source, timeline, index);
          if (bytes > 0) blocks[index] = allocator.allocate(bytes, timeline.stream_of(index));
        } catch (const OutOfMemory&) {
          outcome.died_at = i;
        }
        break;
      case TimelineEvent::Kind::free:
        if (blocks[index] != nullptr) allocator.free(blocks[index]);
        break;
      case TimelineEvent::Kind::record_stream: {
        const auto& use = timeline.stream_use(index);
        if (blocks[use.id] != nullptr) allocator.record_stream(blocks[use.id], use.stream);
        break;
      }
      case TimelineEvent::Kind::synchronize:
        allocator.synchronize();
        break;
      case TimelineEvent::Kind::empty_cache:
        allocator.empty_cache();
        break;
      case TimelineEvent::Kind::begin_phase:
        if (index > 0) close_phase(allocator, outcome);
        break;
      case TimelineEvent::Kind::relabel:
        break;
    }
  }
  close_phase(allocator, outcome);
  return outcome;
}

std::uint64_t least_memory(const Timeline& timeline, const AllocatorConfig& config, EventPolicy policy) {
  const MemoryStats free_running = replay(timeline, config, CounterSource::kUnlimited, policy).stats;
  std::uint64_t runs = ceil_div(free_running.reserved.peak, kStep);
  std::uint64_t dies = free_running.allocated.peak == 0 ? 0 : (free_running.allocated.peak - 1) / kStep;
  while (runs - dies > 1) {
    const std::uint64_t middle = dies + (runs - dies) / 2;
    (replay(timeline, config, middle * kStep, policy).runs() ? runs : dies) = middle;
  }
  return runs * kStep;
}

}  // namespace qlp

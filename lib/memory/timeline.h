// The allocations of a run in their order: what is alive at any point, the peaks of each phase, and material to replay.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "memory/block.h"
#include "memory/category.h"
#include "memory/chunked_vector.h"
#include "memory/memory_stats.h"
#include "memory/string_table.h"

namespace qlp {

/// The number of an allocation in its Timeline, from 0.
using AllocationId = std::uint32_t;

/// What a block is for, and who made it.
struct AllocationLabel {
  Category category = Category::activations;
  NameId op = 0;
  NameId module = 0;

  friend bool operator==(const AllocationLabel&, const AllocationLabel&) = default;
};

/// An allocation that is alive at some point of the run.
struct LiveAllocation {
  AllocationId id = 0;
  std::uint64_t requested = 0;
  std::uint64_t size = 0;  ///< of its block
  StreamId stream = 0;
  std::uint32_t phase = 0;  ///< in which it was made
  AllocationLabel label;    ///< at that point
};

/// The greatest value of a figure in a phase, and the event with which it was first reached.
struct Peak {
  std::uint64_t bytes = 0;
  std::uint32_t event = 0;
};

struct Phase {
  std::string name;
  std::uint32_t first_event = 0;
  Peak requested, allocated, active, reserved;
  MemoryStats end;  ///< figures when the phase was over
};

/// One thing that happened to the allocator from outside.
struct TimelineEvent {
  enum class Kind : std::uint8_t { allocate, free, record_stream, relabel, synchronize, empty_cache, begin_phase };
  Kind kind;
  std::uint32_t index;  ///< of the allocation; of the entry for record_stream and relabel; of the phase
};

/// An allocation whose size the program chose by looking at the device (transformers' caching_allocator_warmup): with
/// less memory it asks for at most (memory - kept) / divisor bytes, where `memory` is what is free, or all there is.
struct DeviceSizedAllocation {
  enum class Of : std::uint8_t { free_memory, capacity };
  AllocationId id = 0;
  Of of = Of::free_memory;
  std::uint32_t divisor = 1;
  std::uint64_t kept = 0;
};

/// Is told what goes on beside the CachingAllocator, which it knows nothing of. An allocation takes 28 bytes, every
/// other event 4 (12 more with a stream, 16 with a label).
class Timeline {
 public:
  static constexpr std::int64_t kMostPhases = std::numeric_limits<std::uint16_t>::max();

  /// Things happen in phases: this comes first. Ends the phase before. `now` are the allocator's figures.
  void begin_phase(std::string_view name, const MemoryStats& now);
  /// Ends the last phase.
  void finish(const MemoryStats& now);

  /// `now` are the figures with this block.
  AllocationId allocated(const Block& block, const AllocationLabel& label, const MemoryStats& now);
  void freed(AllocationId id) { events_.push_back(pack(TimelineEvent::Kind::free, id)); }
  void stream_recorded(AllocationId id, StreamId stream);
  /// From now on the allocation goes under another label.
  void relabelled(AllocationId id, const AllocationLabel& label);
  /// In a replay with less memory the allocation is smaller.
  void sized_by_device(const DeviceSizedAllocation& allocation) { device_sized_.push_back(allocation); }
  void synchronized() { events_.push_back(pack(TimelineEvent::Kind::synchronize, 0)); }
  void cache_emptied() { events_.push_back(pack(TimelineEvent::Kind::empty_cache, 0)); }

  /// Phases in order; the last one has its end only after finish().
  const std::vector<Phase>& phases() const { return phases_; }
  std::uint32_t event_count() const { return static_cast<std::uint32_t>(events_.size()); }
  TimelineEvent event(std::uint32_t index) const {
    const std::uint32_t packed = events_[index];
    return {static_cast<TimelineEvent::Kind>(packed >> kIndexBits), packed & ((std::uint32_t{1} << kIndexBits) - 1)};
  }
  std::uint32_t allocation_count() const { return static_cast<std::uint32_t>(allocations_.size()); }
  std::uint64_t requested_of(AllocationId id) const { return allocations_[id].requested; }
  /// The label with which it was made.
  AllocationLabel label_of(AllocationId id) const;
  StreamId stream_of(AllocationId id) const { return allocations_[id].stream; }
  const std::vector<DeviceSizedAllocation>& device_sized() const { return device_sized_; }
  struct StreamUse {
    AllocationId id;
    StreamId stream;
  };
  /// True if some block's way back waits for a stream other than its own.
  bool waits_for_streams() const { return !stream_uses_.empty(); }
  const StreamUse& stream_use(std::uint32_t index) const { return stream_uses_[index]; }

  /// What is allocated once events 0 to `event` have happened, in the order of making. Blocks that are freed and wait
  /// for a stream are not among them.
  std::vector<LiveAllocation> live_at(std::uint32_t event) const;

 private:
  struct Allocation {
    std::uint64_t requested = 0;
    std::uint32_t units = 0;  ///< of 512 bytes in the block
    NameId op = 0;
    NameId module = 0;
    std::uint16_t phase = 0;
    std::uint8_t category = 0;
    std::uint8_t stream = 0;
  };
  static_assert(sizeof(Allocation) == 24);
  struct Relabelling {
    AllocationId id;
    AllocationLabel label;
  };
  static constexpr unsigned kIndexBits = 29;

  static std::uint32_t pack(TimelineEvent::Kind kind, std::uint32_t index) {
    return static_cast<std::uint32_t>(kind) << kIndexBits | index;
  }
  static void raise(Peak& peak, std::uint64_t bytes, std::uint32_t event) {
    if (bytes > peak.bytes) peak = {bytes, event};
  }

  ChunkedVector<std::uint32_t> events_;  ///< a TimelineEvent each
  ChunkedVector<Allocation> allocations_;
  std::vector<StreamUse> stream_uses_;
  std::vector<Relabelling> relabellings_;
  std::vector<DeviceSizedAllocation> device_sized_;
  std::vector<Phase> phases_;
};

}  // namespace qlp

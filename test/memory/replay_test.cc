#include "memory/replay.h"

#include <vector>

#include <doctest/doctest.h>

using namespace qlp;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A run whose cached segments get in the way: it reserves 90 MiB, and can do with less.
struct Run {
  Run() {
    timeline.begin_phase("step", allocator.stats());
    free(allocate(30 * kMiB));
    Block* kept = allocate(20 * kMiB - 1024);
    free(allocate(60 * kMiB));
    free(kept);
    timeline.synchronized();
    allocator.synchronize();
    timeline.finish(allocator.stats());
  }
  Block* allocate(std::uint64_t bytes) {
    Block* block = allocator.allocate(bytes, 0);
    block->tag = timeline.allocated(*block, {}, allocator.stats());
    return block;
  }
  void free(Block* block) {
    timeline.freed(block->tag);
    allocator.free(block);
  }
  CounterSource source;
  CachingAllocator allocator{AllocatorConfig{}, source};
  Timeline timeline;
};

}  // namespace

TEST_CASE("memory/replay: without limit it is the run itself") {
  const Run run;
  const auto outcome = replay(run.timeline, {}, CounterSource::kUnlimited);
  CHECK(outcome.runs());
  CHECK(outcome.stats.reserved.peak == run.allocator.stats().reserved.peak);
  CHECK(outcome.stats.allocated.peak == run.allocator.stats().allocated.peak);
  CHECK(outcome.stats.num_alloc_retries == 0);
}

TEST_CASE("memory/replay: under a limit it dies at an event") {
  const Run run;
  const auto outcome = replay(run.timeline, {}, 62 * kMiB);
  REQUIRE_FALSE(outcome.runs());
  const auto event = run.timeline.event(*outcome.died_at);
  CHECK(event.kind == TimelineEvent::Kind::allocate);
  CHECK(run.timeline.requested_of(event.index) == 60 * kMiB);
  CHECK(outcome.stats.num_ooms == 1);
}

TEST_CASE("memory/replay: the least memory lies between allocated and reserved, and is least") {
  const Run run;
  const auto least = least_memory(run.timeline, {});
  CHECK(run.allocator.stats().reserved.peak == 90 * kMiB);
  CHECK(least >= run.allocator.stats().allocated.peak);
  CHECK(replay(run.timeline, {}, least).runs());
  CHECK_FALSE(replay(run.timeline, {}, least - 2 * kMiB).runs());
}

TEST_CASE("memory/replay: given back cache makes a run fit") {
  CounterSource source;
  CachingAllocator allocator({}, source);
  Timeline timeline;
  timeline.begin_phase("step", allocator.stats());
  for (const std::uint64_t mib : {40u, 50u, 60u}) {
    Block* block = allocator.allocate(mib * kMiB, 0);
    const auto id = timeline.allocated(*block, {}, allocator.stats());
    timeline.freed(id);
    allocator.free(block);
  }
  CHECK(allocator.stats().reserved.peak == 150 * kMiB);
  CHECK(least_memory(timeline, {}) == 60 * kMiB);
  const auto outcome = replay(timeline, {}, 60 * kMiB);
  CHECK(outcome.stats.num_alloc_retries == 2);
}

TEST_CASE("memory/replay: streams, synchronisation and emptying of the cache are part of the run") {
  CounterSource source;
  CachingAllocator allocator({}, source, EventPolicy::at_synchronize);
  Timeline timeline;
  timeline.begin_phase("step", allocator.stats());
  const auto use = [&](bool synchronize) {
    Block* block = allocator.allocate(40 * kMiB, 1);
    const auto id = timeline.allocated(*block, {}, allocator.stats());
    timeline.stream_recorded(id, 0);
    allocator.record_stream(block, 0);
    timeline.relabelled(id, {Category::communication_buffers, 0, 0});
    timeline.freed(id);
    allocator.free(block);
    if (synchronize) {
      timeline.synchronized();
      allocator.synchronize();
    }
  };
  use(false);
  use(true);
  use(false);
  timeline.cache_emptied();
  allocator.empty_cache();
  timeline.finish(allocator.stats());
  const auto lagging = replay(timeline, {}, CounterSource::kUnlimited, EventPolicy::at_synchronize);
  CHECK(lagging.stats.reserved.peak == allocator.stats().reserved.peak);
  CHECK(lagging.stats.reserved.peak == 80 * kMiB);
  CHECK(lagging.stats.reserved.current == 0);
  CHECK(replay(timeline, {}, CounterSource::kUnlimited).stats.reserved.peak == 40 * kMiB);
}

TEST_CASE("memory/replay: an allocation that the program sizes by the device is smaller with less memory") {
  CounterSource source;
  CachingAllocator allocator({}, source);
  Timeline timeline;
  timeline.begin_phase("load", allocator.stats());
  Block* weight = allocator.allocate(10 * kMiB, 0);
  timeline.allocated(*weight, {}, allocator.stats());
  Block* warmup = allocator.allocate(100 * kMiB, 0);
  const auto id = timeline.allocated(*warmup, {}, allocator.stats());
  timeline.sized_by_device({id, DeviceSizedAllocation::Of::free_memory, 2, 30 * kMiB});
  timeline.freed(id);
  allocator.free(warmup);

  CHECK(replay(timeline, {}, 240 * kMiB).stats.allocated.peak == 110 * kMiB);
  CHECK(replay(timeline, {}, 200 * kMiB).stats.allocated.peak == 90 * kMiB);
  const auto without = replay(timeline, {}, 40 * kMiB);
  CHECK(without.runs());
  CHECK(without.stats.allocated.peak == 10 * kMiB);
}

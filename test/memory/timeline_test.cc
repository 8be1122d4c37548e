#include "memory/timeline.h"

#include <doctest/doctest.h>

#include "memory/caching_allocator.h"

using namespace qlp;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// An allocator and the timeline beside it.
struct Run {
  CounterSource source;
  CachingAllocator allocator{AllocatorConfig{}, source};
  Timeline timeline;

  Block* allocate(std::uint64_t bytes, AllocationLabel label = {}, StreamId stream = 0) {
    Block* block = allocator.allocate(bytes, stream);
    block->tag = timeline.allocated(*block, label, allocator.stats());
    return block;
  }
  void free(Block* block) {
    timeline.freed(block->tag);
    allocator.free(block);
  }
};

}  // namespace

TEST_CASE("memory/timeline: each phase has its peaks, from what the phase before left") {
  Run run;
  run.timeline.begin_phase("load", run.allocator.stats());
  Block* weight = run.allocate(100 * kMiB);
  Block* other = run.allocate(50 * kMiB);
  run.free(other);
  run.timeline.begin_phase("forward", run.allocator.stats());
  run.allocate(20 * kMiB);
  run.timeline.begin_phase("end", run.allocator.stats());
  run.free(weight);
  run.timeline.finish(run.allocator.stats());

  const auto& phases = run.timeline.phases();
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].name == "load");
  CHECK(phases[0].allocated.bytes == 150 * kMiB);
  CHECK(phases[0].end.allocated.current == 100 * kMiB);
  CHECK(phases[1].allocated.bytes == 120 * kMiB);
  CHECK(phases[1].reserved.bytes == 150 * kMiB);
  CHECK(phases[1].requested.bytes == 120 * kMiB);
  CHECK(phases[2].allocated.bytes == 120 * kMiB);
  CHECK(phases[2].allocated.event == phases[2].first_event);
  CHECK(phases[2].end.allocated.current == 20 * kMiB);
}

TEST_CASE("memory/timeline: the inventory at any event") {
  Run run;
  StringTable names;
  const auto linear = names.intern("linear"), attention = names.intern("self_attn");
  run.timeline.begin_phase("forward", run.allocator.stats());
  Block* a = run.allocate(1000, {Category::activations, linear, attention});
  run.allocate(3000, {Category::parameters, 0, 0}, 2);
  const auto peak = run.timeline.event_count() - 1;
  run.free(a);
  const auto after = run.timeline.event_count() - 1;

  const auto at_peak = run.timeline.live_at(peak);
  REQUIRE(at_peak.size() == 2);
  CHECK(at_peak[0].requested == 1000);
  CHECK(at_peak[0].size == 1024);
  CHECK(names.name(at_peak[0].label.op) == "linear");
  CHECK(names.name(at_peak[0].label.module) == "self_attn");
  CHECK(at_peak[1].stream == 2);
  CHECK(at_peak[1].id == 1);
  const auto later = run.timeline.live_at(after);
  REQUIRE(later.size() == 1);
  CHECK(later[0].label.category == Category::parameters);
  CHECK(run.timeline.live_at(0).empty());
}

TEST_CASE("memory/timeline: a new label holds from where it was given") {
  Run run;
  run.timeline.begin_phase("backward", run.allocator.stats());
  Block* block = run.allocate(1000, {Category::gradient_temporaries, 3, 4});
  const auto before = run.timeline.event_count() - 1;
  run.timeline.relabelled(block->tag, {Category::gradients, 3, 4});
  CHECK(run.timeline.live_at(before)[0].label.category == Category::gradient_temporaries);
  CHECK(run.timeline.live_at(before + 1)[0].label.category == Category::gradients);
}

TEST_CASE("memory/timeline: use on the block's own stream is not recorded") {
  Run run;
  run.timeline.begin_phase("forward", run.allocator.stats());
  Block* block = run.allocate(1000, {}, 1);
  const auto events = run.timeline.event_count();
  run.timeline.stream_recorded(block->tag, 1);
  CHECK(run.timeline.event_count() == events);
  run.timeline.stream_recorded(block->tag, 0);
  REQUIRE(run.timeline.event_count() == events + 1);
  const auto event = run.timeline.event(events);
  CHECK(event.kind == TimelineEvent::Kind::record_stream);
  CHECK(run.timeline.stream_use(event.index).id == block->tag);
  CHECK(run.timeline.stream_use(event.index).stream == 0);
}

TEST_CASE("memory/timeline: grows past a chunk") {
  Run run;
  run.timeline.begin_phase("forward", run.allocator.stats());
  for (int i = 0; i < 30000; ++i) run.free(run.allocate(static_cast<std::uint64_t>(i) + 1));
  Block* kept = run.allocate(7);
  CHECK(run.timeline.allocation_count() == 30001);
  CHECK(run.timeline.requested_of(20000) == 20001);
  const auto live = run.timeline.live_at(run.timeline.event_count() - 1);
  REQUIRE(live.size() == 1);
  CHECK(live[0].id == kept->tag);
}

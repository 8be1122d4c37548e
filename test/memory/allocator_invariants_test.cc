// What holds for an allocator whatever is asked of it.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "memory/caching_allocator.h"

using namespace qlp;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void check_invariants(const CachingAllocator& allocator, const CounterSource& source, const std::vector<Block*>& live) {
  const MemoryStats& stats = allocator.stats();
  std::uint64_t reserved = 0, allocated = 0, waiting = 0, requested = 0, end = 0;
  std::set<std::uint64_t> addresses;
  for (const SegmentView& segment : allocator.segments()) {
    REQUIRE(segment.address >= end);
    end = segment.address + segment.size;
    reserved += segment.size;
    std::uint64_t next = segment.address;
    bool free_before = false;
    for (const auto& [block, state] : segment.parts) {
      REQUIRE(block.address == next);
      REQUIRE(block.size > 0);
      REQUIRE(block.size % 512 == 0);
      REQUIRE(block.stream == segment.stream);
      const bool free = state == SegmentView::State::free;
      REQUIRE_FALSE((free && free_before));  // they would have merged
      free_before = free;
      next += block.size;
      if (free) continue;
      REQUIRE(block.requested <= block.size);
      requested += block.requested;
      if (state == SegmentView::State::allocated) {
        allocated += block.size;
        addresses.insert(block.address);
      } else {
        waiting += block.size;
      }
    }
    REQUIRE(next == end);
  }
  REQUIRE(addresses.size() == live.size());
  for (const Block* block : live) REQUIRE(addresses.count(block->address) == 1);
  REQUIRE(stats.requested.current == requested);
  REQUIRE(stats.allocated.current == allocated);
  REQUIRE(stats.active.current == allocated + waiting);
  REQUIRE(stats.reserved.current == reserved);
  REQUIRE(source.used() == reserved);
  for (const auto* figure : {&stats.requested, &stats.allocated, &stats.active, &stats.reserved})
    REQUIRE(figure->current <= figure->peak);
  REQUIRE(stats.requested.current <= stats.active.current);
  REQUIRE(stats.active.current <= stats.reserved.current);
}

void check_random_use(const char* options, EventPolicy policy, EqualBlocks equal_blocks) {
  CAPTURE(options);
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    AllocatorConfig config = parse_allocator_config(options).value();
    config.equal_blocks = equal_blocks;
    CounterSource source(1200 * kMiB);
    CachingAllocator allocator(config, source, policy);
    std::vector<Block*> live;
    const auto drop = [&](std::size_t i) {
      allocator.free(live[i]);
      live[i] = live.back();
      live.pop_back();
    };
    for (int step = 0; step < 3000; ++step) {
      const auto kind = random() % 100;
      if (kind < 50 || live.empty()) {
        const std::uint64_t limit = kind < 20 ? 4096 : kind < 35 ? 2 * kMiB : kind < 47 ? 30 * kMiB : 150 * kMiB;
        const std::uint64_t bytes = random() % limit + 1;
        try {
          live.push_back(allocator.allocate(bytes, static_cast<StreamId>(random() % 3)));
          REQUIRE(live.back()->size >= bytes);
          REQUIRE(live.back()->requested == bytes);
        } catch (const OutOfMemory&) {
          while (live.size() > 10) drop(random() % live.size());
        }
      } else if (kind < 90) {
        drop(random() % live.size());
      } else if (kind < 97) {
        allocator.record_stream(live[random() % live.size()], static_cast<StreamId>(random() % 4));
      } else if (kind < 99) {
        allocator.synchronize();
      } else {
        allocator.empty_cache();
      }
      if (step % 20 == 0) check_invariants(allocator, source, live);
    }
    while (!live.empty()) drop(live.size() - 1);
    allocator.empty_cache();
    check_invariants(allocator, source, live);
    REQUIRE(source.used() == 0);
  }
}

}  // namespace

TEST_CASE("memory/allocator_invariants: figures, segments and blocks always agree") {
  for (const auto policy : {EventPolicy::ready_at_once, EventPolicy::at_synchronize}) {
    for (const auto equal_blocks : {EqualBlocks::lowest_address, EqualBlocks::oldest_segment}) {
      check_random_use("", policy, equal_blocks);
      check_random_use("expandable_segments:True", policy, equal_blocks);
      check_random_use("expandable_segments:True,large_segment_size_mb:12", policy, equal_blocks);
      check_random_use("max_split_size_mb:40", policy, equal_blocks);
      check_random_use("roundup_power2_divisions:[8:2,64:8,>:4],max_split_size_mb:100", policy, equal_blocks);
      check_random_use("garbage_collection_threshold:0.4,per_process_memory_fraction:0.7", policy, equal_blocks);
    }
  }
}

#include "memory/caching_allocator.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memory/recorded_source.h"

using namespace qlp;
using namespace qlp::test;

namespace {

constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// An allocator over a counter, with the log of its events.
struct Fixture {
  explicit Fixture(const char* options = "", std::uint64_t limit = CounterSource::kUnlimited,
                   EventPolicy policy = EventPolicy::ready_at_once)
      : source(limit), allocator(parse_allocator_config(options).value(), source, policy) {
    allocator.set_observer(&log);
  }
  std::uint64_t size_of(std::uint64_t bytes) { return allocator.allocate(bytes, 0)->size; }
  std::uint64_t reserved() const { return allocator.stats().reserved.current; }
  std::size_t count(std::string_view action) const {
    std::size_t n = 0;
    for (const auto& line : log.lines) n += line.action == action;
    return n;
  }

  CounterSource source;
  EventLog log;
  CachingAllocator allocator;
};

}  // namespace

TEST_CASE("memory/caching_allocator: requests are rounded up to 512 bytes") {
  Fixture f;
  CHECK(f.size_of(1) == 512);
  CHECK(f.size_of(512) == 512);
  CHECK(f.size_of(513) == 1024);
  CHECK(f.allocator.stats().requested.current == 1 + 512 + 513);
  CHECK(f.allocator.stats().allocated.current == 2048);
}

TEST_CASE("memory/caching_allocator: rounding to divisions between powers of two") {
  Fixture f("roundup_power2_divisions:4");
  CHECK(f.size_of(1200) == 1536);  // too small for the rule
  CHECK(f.size_of(2048) == 2048);
  CHECK(f.size_of(2049) == 2560);
  CHECK(f.size_of(5000) == 5120);
  CHECK(f.size_of(1200 * kKiB) == 1280 * kKiB);
  CHECK(f.size_of(1800 * kKiB) == 2 * kMiB);
}

TEST_CASE("memory/caching_allocator: sizes of segments") {
  Fixture f;
  f.allocator.allocate(1, 0);
  CHECK(f.reserved() == 2 * kMiB);
  f.allocator.allocate(kMiB, 0);
  CHECK(f.reserved() == 2 * kMiB);
  f.allocator.allocate(kMiB, 0);
  CHECK(f.reserved() == 4 * kMiB);
  f.allocator.allocate(kMiB + 1, 0);
  CHECK(f.reserved() == 24 * kMiB);
  f.allocator.allocate(10 * kMiB - 512, 0);
  CHECK(f.reserved() == 24 * kMiB);
  f.allocator.allocate(10 * kMiB, 0);
  CHECK(f.reserved() == 34 * kMiB);
  f.allocator.allocate(11 * kMiB, 0);
  CHECK(f.reserved() == 46 * kMiB);
}

TEST_CASE("memory/caching_allocator: a large block keeps a rest of up to 1 MiB") {
  Fixture f;
  CHECK(f.size_of(11 * kMiB) == 12 * kMiB);
  CHECK(f.size_of(11 * kMiB - 512) == 11 * kMiB - 512);
  CHECK(f.allocator.stats().allocated.current > f.allocator.stats().requested.current);
}

TEST_CASE("memory/caching_allocator: a small block is split for every rest") {
  Fixture f;
  f.allocator.allocate(kMiB - 512, 0);
  const Block* second = f.allocator.allocate(kMiB - 1024, 0);
  CHECK(second->size == kMiB - 1024);
  CHECK(f.size_of(1536) == 1536);
  CHECK(f.reserved() == 2 * kMiB);
}

TEST_CASE("memory/caching_allocator: a freed block merges with its free neighbours") {
  Fixture f;
  Block* a = f.allocator.allocate(512, 0);
  Block* b = f.allocator.allocate(512, 0);
  Block* c = f.allocator.allocate(512, 0);
  const auto start = a->address;
  f.allocator.free(a);
  f.allocator.free(c);
  REQUIRE(f.allocator.segments().size() == 1);
  CHECK(f.allocator.segments()[0].parts.size() == 3);
  f.allocator.free(b);
  CHECK(f.allocator.segments()[0].parts.size() == 1);
  CHECK(f.allocator.allocate(kMiB, 0)->address == start);
}

TEST_CASE("memory/caching_allocator: the smallest block that is large enough, then the lowest address") {
  Fixture f;
  std::vector<Block*> large;
  for (const std::uint64_t mib : {40u, 20u, 30u, 20u}) large.push_back(f.allocator.allocate(mib * kMiB, 0));
  const auto first_20 = large[1]->address, second_20 = large[3]->address;
  CHECK(second_20 < first_20);  // the counter goes down
  for (Block* block : large) f.allocator.free(block);
  CHECK(f.allocator.allocate(20 * kMiB, 0)->address == second_20);
  CHECK(f.allocator.allocate(20 * kMiB, 0)->address == first_20);
}

TEST_CASE("memory/caching_allocator: newer torch takes the oldest segment of equal blocks") {
  AllocatorConfig config;
  config.equal_blocks = EqualBlocks::oldest_segment;
  CounterSource source;
  CachingAllocator allocator(config, source);
  Block* older = allocator.allocate(20 * kMiB, 0);
  Block* newer = allocator.allocate(20 * kMiB, 0);
  const auto first = older->address;
  allocator.free(newer);
  allocator.free(older);
  CHECK(allocator.allocate(20 * kMiB, 0)->address == first);
}

TEST_CASE("memory/caching_allocator: each stream has its own blocks") {
  Fixture f;
  Block* block = f.allocator.allocate(30 * kMiB, 1);
  f.allocator.free(block);
  f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.reserved() == 60 * kMiB);
  f.allocator.allocate(30 * kMiB, 1);
  CHECK(f.reserved() == 60 * kMiB);
  CHECK_THROWS_AS(f.allocator.allocate(1, kMaxStreams), std::out_of_range);
}

TEST_CASE("memory/caching_allocator: small requests never take large blocks") {
  Fixture f;
  f.allocator.free(f.allocator.allocate(20 * kMiB, 0));
  f.allocator.allocate(kMiB, 0);
  CHECK(f.reserved() == 22 * kMiB);
}

TEST_CASE("memory/caching_allocator: a block used on another stream comes back at the next allocation") {
  Fixture f;
  Block* block = f.allocator.allocate(30 * kMiB, 0);
  f.allocator.record_stream(block, 1);
  f.allocator.free(block);
  CHECK(f.allocator.stats().allocated.current == 0);
  CHECK(f.allocator.stats().active.current == 30 * kMiB);
  CHECK(f.allocator.stats().requested.current == 30 * kMiB);  // as torch counts: until the block is free
  CHECK(f.count("free_requested") == 1);
  CHECK(f.count("free_completed") == 0);
  f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.count("free_completed") == 1);
  CHECK(f.reserved() == 30 * kMiB);
}

TEST_CASE("memory/caching_allocator: on a lagging device it comes back only after a synchronisation") {
  Fixture f("", CounterSource::kUnlimited, EventPolicy::at_synchronize);
  Block* block = f.allocator.allocate(30 * kMiB, 0);
  f.allocator.record_stream(block, 1);
  f.allocator.record_stream(block, 2);
  f.allocator.record_stream(block, 0);  // its own stream: nothing to wait for
  f.allocator.free(block);
  f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.reserved() == 60 * kMiB);
  f.allocator.synchronize();
  CHECK(f.allocator.stats().active.current == 60 * kMiB);
  f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.reserved() == 60 * kMiB);
  CHECK(f.allocator.stats().active.current == 60 * kMiB);
}

TEST_CASE("memory/caching_allocator: a single free can be completed by hand") {
  Fixture f("", CounterSource::kUnlimited, EventPolicy::at_synchronize);
  Block* a = f.allocator.allocate(512, 0);
  Block* b = f.allocator.allocate(512, 0);
  for (Block* block : {a, b}) {
    f.allocator.record_stream(block, 1);
    f.allocator.free(block);
  }
  f.allocator.complete_free(b);
  CHECK(f.allocator.stats().active.current == 512);
  f.allocator.synchronize();
  f.allocator.allocate(512, 0);
  CHECK(f.allocator.stats().active.current == 512);
  CHECK(f.count("free_completed") == 2);
}

TEST_CASE("memory/caching_allocator: empty_cache gives whole segments back, also those that wait") {
  Fixture f("", CounterSource::kUnlimited, EventPolicy::at_synchronize);
  Block* whole = f.allocator.allocate(30 * kMiB, 0);
  Block* part = f.allocator.allocate(5 * kMiB, 0);
  Block* kept = f.allocator.allocate(5 * kMiB, 0);
  f.allocator.record_stream(whole, 1);
  f.allocator.free(whole);
  f.allocator.free(part);
  f.allocator.empty_cache();
  CHECK(f.reserved() == 20 * kMiB);
  CHECK(f.source.used() == 20 * kMiB);
  f.allocator.free(kept);
  f.allocator.empty_cache();
  CHECK(f.reserved() == 0);
  CHECK(f.allocator.stats().reserved.peak == 50 * kMiB);
  CHECK(f.allocator.stats().num_alloc_retries == 0);
}

TEST_CASE("memory/caching_allocator: when memory is out the cache is given back and it is tried again") {
  Fixture f("", 64 * kMiB);
  Block* a = f.allocator.allocate(30 * kMiB, 0);
  Block* b = f.allocator.allocate(30 * kMiB, 1);
  f.allocator.free(a);
  f.allocator.free(b);
  Block* c = f.allocator.allocate(50 * kMiB, 0);
  CHECK(f.allocator.stats().num_alloc_retries == 1);
  CHECK(f.reserved() == 50 * kMiB);
  CHECK(f.count("segment_free") == 2);
  CHECK_THROWS_AS(f.allocator.allocate(20 * kMiB, 0), OutOfMemory);
  CHECK(f.allocator.stats().num_ooms == 1);
  CHECK(f.allocator.stats().num_alloc_retries == 2);
  CHECK(f.log.lines.back().action == "oom");
  f.allocator.free(c);
  CHECK_NOTHROW(f.allocator.allocate(50 * kMiB, 0));
}

TEST_CASE("memory/caching_allocator: what is said when no memory is left") {
  Fixture f("", 64 * kMiB);
  f.allocator.allocate(40 * kMiB, 0);
  try {
    f.allocator.allocate(30 * kMiB, 0);
    FAIL("there was memory");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested() == 30 * kMiB);
    CHECK(error.capacity() == 64 * kMiB);
    CHECK(error.stats().reserved.current == 40 * kMiB);
    CHECK(std::string(error.what()) ==
          "out of memory: tried to allocate 30.00 MiB; of 64.00 MiB, 40.00 MiB are reserved and 40.00 MiB "
          "allocated");
  }
  CHECK_THROWS_AS(f.allocator.allocate(std::uint64_t{1} << 60, 0), OutOfMemory);
}

TEST_CASE("memory/caching_allocator: a memory fraction is a limit on what is reserved") {
  AllocatorConfig config;
  config.memory_fraction = 0.5;
  CounterSource source(100 * kMiB);
  CachingAllocator allocator(config, source);
  allocator.allocate(40 * kMiB, 0);
  CHECK_THROWS_AS(allocator.allocate(12 * kMiB, 0), OutOfMemory);
  CHECK_NOTHROW(allocator.allocate(10 * kMiB, 0));
}

TEST_CASE("memory/caching_allocator: blocks from max_split_size on are not split nor given to smaller requests") {
  Fixture f("max_split_size_mb:64");
  f.allocator.free(f.allocator.allocate(100 * kMiB, 0));
  f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.reserved() == 130 * kMiB);
  CHECK(f.size_of(90 * kMiB) == 100 * kMiB);
  CHECK(f.reserved() == 130 * kMiB);
}

TEST_CASE("memory/caching_allocator: an unsplit block may be larger by less than max_non_split_rounding") {
  Fixture f("max_split_size_mb:64,max_non_split_rounding_mb:30");
  f.allocator.free(f.allocator.allocate(100 * kMiB, 0));
  f.allocator.allocate(70 * kMiB, 0);
  CHECK(f.reserved() == 170 * kMiB);
  CHECK(f.size_of(70 * kMiB + 512) == 100 * kMiB);
}

TEST_CASE("memory/caching_allocator: with max_split_size only as many large blocks as needed are given back first") {
  Fixture f("max_split_size_mb:64", 400 * kMiB);
  std::vector<Block*> blocks;
  for (const std::uint64_t mib : {70u, 100u, 80u, 90u}) blocks.push_back(f.allocator.allocate(mib * kMiB, 0));
  for (Block* block : blocks) f.allocator.free(block);
  f.allocator.allocate(150 * kMiB, 0);
  CHECK(f.count("segment_free") == 2);  // 100 and 90
  CHECK(f.reserved() == 300 * kMiB);
  CHECK(f.allocator.stats().num_alloc_retries == 0);
}

TEST_CASE("memory/caching_allocator: above the threshold the older unused segments are collected") {
  AllocatorConfig config;
  config.memory_fraction = 1.0;
  config.garbage_collection_threshold = 0.5;
  CounterSource source(200 * kMiB);
  EventLog log;
  CachingAllocator allocator(config, source);
  allocator.set_observer(&log);
  Block* old = allocator.allocate(60 * kMiB, 0);
  Block* used = allocator.allocate(50 * kMiB, 0);
  const auto old_address = old->address;
  allocator.free(old);
  for (int i = 0; i < 5; ++i) {
    allocator.free(used);
    used = allocator.allocate(50 * kMiB, 0);
  }
  allocator.free(used);
  allocator.allocate(70 * kMiB, 0);
  std::vector<std::uint64_t> freed;
  for (const auto& line : log.lines)
    if (line.action == "segment_free") freed.push_back(line.address);
  CHECK(freed == std::vector<std::uint64_t>{old_address});
  CHECK(allocator.stats().num_alloc_retries == 0);
}

TEST_CASE("memory/caching_allocator: an expandable segment grows by pages of 20 MiB, or of 2 MiB for small requests") {
  Fixture f("expandable_segments:True");
  Block* a = f.allocator.allocate(30 * kMiB, 0);
  CHECK(f.reserved() == 40 * kMiB);
  CHECK(a->size == 30 * kMiB);
  Block* b = f.allocator.allocate(30 * kMiB, 0);
  CHECK(b->address == a->address + 30 * kMiB);
  CHECK(f.reserved() == 60 * kMiB);
  f.allocator.allocate(512, 0);
  CHECK(f.reserved() == 62 * kMiB);
  CHECK(f.allocator.segments().size() == 2);
  f.allocator.allocate(512, 1);
  CHECK(f.allocator.segments().size() == 3);
}

TEST_CASE("memory/caching_allocator: on a device without limit there are addresses for the segments of all streams") {
  Fixture f("expandable_segments:True");
  for (StreamId stream = 0; stream < kMaxStreams; ++stream)
    for (const std::uint64_t bytes : {kKiB, 30 * kMiB}) f.allocator.allocate(bytes, stream);
  CHECK(f.allocator.segments().size() == 2 * kMaxStreams);
  CHECK(f.reserved() == kMaxStreams * (2 + 40) * kMiB);
}

TEST_CASE("memory/caching_allocator: the free end of an expandable segment is used after smaller holes") {
  Fixture f("expandable_segments:True");
  Block* a = f.allocator.allocate(12 * kMiB, 0);
  f.allocator.allocate(14 * kMiB, 0);  // leaves 14 MiB at the end
  const auto hole = a->address;
  f.allocator.free(a);
  CHECK(f.allocator.allocate(11 * kMiB, 0)->address == hole);
  Fixture g("expandable_segments:True");
  a = g.allocator.allocate(28 * kMiB, 0);  // leaves 12 MiB at the end, smaller than the hole of 14 MiB
  Block* b = g.allocator.allocate(14 * kMiB, 0);
  g.allocator.allocate(6 * kMiB, 0);
  const auto second_hole = b->address;
  g.allocator.free(b);
  CHECK(g.allocator.allocate(11 * kMiB, 0)->address == second_hole);
}

TEST_CASE("memory/caching_allocator: whole free pages of an expandable segment are given back") {
  Fixture f("expandable_segments:True");
  Block* a = f.allocator.allocate(50 * kMiB, 0);
  Block* b = f.allocator.allocate(5 * kMiB, 0);
  f.allocator.free(a);
  f.allocator.empty_cache();
  CHECK(f.reserved() == 20 * kMiB);  // b lies in the third page
  CHECK(f.source.used() == 20 * kMiB);
  CHECK(f.count("segment_unmap") == 1);
  const auto base = b->address - 50 * kMiB;
  Block* c = f.allocator.allocate(45 * kMiB, 0);
  CHECK(c->address == base);
  CHECK(f.reserved() == 60 * kMiB);
  f.allocator.free(b);
  f.allocator.free(c);
  f.allocator.empty_cache();
  CHECK(f.reserved() == 0);
  CHECK(f.allocator.segments().empty());
}

TEST_CASE("memory/caching_allocator: peaks are kept until they are reset") {
  Fixture f;
  f.allocator.free(f.allocator.allocate(30 * kMiB, 0));
  CHECK(f.allocator.stats().allocated.peak == 30 * kMiB);
  f.allocator.reset_peaks();
  CHECK(f.allocator.stats().allocated.peak == 0);
  CHECK(f.allocator.stats().reserved.peak == 30 * kMiB);
}

TEST_CASE("memory/caching_allocator: the observer hears of everything in order") {
  Fixture f;
  Block* block = f.allocator.allocate(100, 0);
  const auto address = block->address;
  f.allocator.free(block);
  const std::vector<HistoryLine> expected{{"segment_alloc", 0, 2 * kMiB, address},
                                          {"alloc", 0, 100, address},
                                          {"free_requested", 0, 100, address},
                                          {"free_completed", 0, 100, address}};
  CHECK(f.log.lines == expected);
  f.allocator.set_observer(nullptr);
  f.allocator.allocate(100, 0);
  CHECK(f.log.lines == expected);
}

#include "memory/free_blocks.h"

#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

using namespace qlp;

namespace {

struct BySizeAndAddress {
  bool operator()(const CachedBlock* a, const CachedBlock* b) const {
    return std::tie(a->size, a->address) < std::tie(b->size, b->address);
  }
};

}  // namespace

TEST_CASE("memory/free_blocks: behaves as a set ordered by size and address") {
  std::mt19937 random(7);
  std::vector<CachedBlock> blocks(3000);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    // A few favourite sizes, so that many blocks are equal; the rest from 512 bytes to hundreds of GiB.
    const auto exponent = random() % 30;
    blocks[i].size = 512 * (random() % 2 ? random() % 5 + 1 : (std::uint64_t{1} << exponent) + random() % 64);
    blocks[i].address = 512 * (i + (std::uint64_t{random()} << 16));
  }
  FreeBlocks bins;
  std::set<CachedBlock*, BySizeAndAddress> set;
  CHECK(bins.best_fit(512) == nullptr);
  CHECK(bins.largest() == nullptr);
  for (int step = 0; step < 20000; ++step) {
    CachedBlock* block = &blocks[random() % blocks.size()];
    if (set.erase(block) != 0) {
      bins.erase(block);
    } else {
      bins.insert(block);
      set.insert(block);
    }
    CachedBlock key;
    key.size = blocks[random() % blocks.size()].size;
    const auto expected = set.lower_bound(&key);
    CachedBlock* found = bins.best_fit(key.size);
    REQUIRE(found == (expected == set.end() ? nullptr : *expected));
    if (found != nullptr)
      REQUIRE(bins.after(found) == (std::next(expected) == set.end() ? nullptr : *std::next(expected)));
    REQUIRE(bins.largest() == (set.empty() ? nullptr : *set.rbegin()));
  }
  CHECK(bins.in_order() == std::vector<CachedBlock*>(set.begin(), set.end()));
}

TEST_CASE("memory/free_blocks: an offset to the rank goes before the address") {
  std::vector<CachedBlock> blocks(2);
  blocks[0].size = blocks[1].size = 1024;
  blocks[0].address = 512;
  blocks[1].address = 4096;
  blocks[0].rank_offset = 1000;
  FreeBlocks bins;
  for (auto& block : blocks) bins.insert(&block);
  CHECK(bins.best_fit(600) == &blocks[1]);
}

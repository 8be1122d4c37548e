#include "shard/zero_layout.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

using namespace qlp;

namespace {

/// The rank of every element of the flat buffer, padding left out.
std::vector<std::int64_t> ranks_of_elements(const ZeroLayout& layout, std::size_t parameters) {
  std::vector<std::int64_t> ranks;
  for (std::size_t i = 0; i < parameters; ++i)
    for (const auto& slice : layout.slices(i))
      ranks.insert(ranks.end(), static_cast<std::size_t>(slice.numel), slice.rank);
  return ranks;
}

const std::vector<std::vector<std::int64_t>> kSamples{
    {1},      {2, 3, 5}, {7, 1, 1, 1, 30},    {64, 64, 64, 64}, {1, 1, 1, 1, 1, 1, 1},
    {100, 1}, {1, 100},  {13, 17, 19, 23, 29}};

}  // namespace

TEST_CASE("shard/zero_layout: ranks share the flat buffer in equal parts of an even size, in order") {
  for (const auto& numels : kSamples)
    for (const std::int64_t world_size : {1, 2, 3, 8, 64}) {
      const ZeroLayout layout(numels, world_size);
      const std::int64_t total = std::accumulate(numels.begin(), numels.end(), std::int64_t{0});
      CHECK(layout.partition_size() % 2 == 0);
      CHECK(layout.numel() == layout.partition_size() * world_size);
      CHECK(layout.numel() >= total);
      CHECK(layout.numel() < total + 2 * world_size);
      const auto ranks = ranks_of_elements(layout, numels.size());
      REQUIRE(static_cast<std::int64_t>(ranks.size()) == total);
      for (std::size_t i = 0; i < ranks.size(); ++i)
        CHECK(ranks[i] == static_cast<std::int64_t>(i) / layout.partition_size());
    }
}

TEST_CASE("shard/zero_layout: the members of a rank are the parameters of which it has a slice") {
  for (const auto& numels : kSamples)
    for (const std::int64_t world_size : {1, 2, 3, 8}) {
      const ZeroLayout layout(numels, world_size);
      for (std::int64_t rank = 0; rank < world_size; ++rank) {
        const auto members = layout.members(rank);
        for (std::size_t i = 0; i < numels.size(); ++i) {
          const auto slices = layout.slices(i);
          const bool has = std::any_of(slices.begin(), slices.end(), [&](const auto& s) { return s.rank == rank; });
          CHECK(layout.has(rank, i) == has);
          CHECK((std::find(members.begin(), members.end(), i) != members.end()) == has);
        }
      }
    }
}

TEST_CASE("shard/zero_layout: ranks may have a part of one parameter, or nothing but padding") {
  const ZeroLayout one({30}, 3);
  CHECK(one.slices(0) == std::vector<ZeroLayout::Slice>{{0, 10}, {1, 10}, {2, 10}});
  CHECK(one.members(2) == std::vector<std::size_t>{0});
  const ZeroLayout padded({2}, 4);
  CHECK(padded.members(0) == std::vector<std::size_t>{0});
  CHECK(padded.members(3).empty());
}

TEST_CASE("shard/zero_layout: round robin deals parameters out to the ranks") {
  CHECK(round_robin_order(5, 2) == std::vector<std::size_t>{0, 2, 4, 1, 3});
  CHECK(round_robin_order(2, 4) == std::vector<std::size_t>{0, 1});
  CHECK(round_robin_order(6, 3) == std::vector<std::size_t>{0, 3, 1, 4, 2, 5});
}

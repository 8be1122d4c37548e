#include "memory/segment_source.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
}

TEST_CASE("memory/segment_source: addresses go down, 2 MiB apart, and segments never overlap") {
  CounterSource source;
  const auto a = *source.allocate(20 * kMiB);
  const auto b = *source.allocate(2 * kMiB);
  CHECK(b + 2 * kMiB + 2 * kMiB == a);
  CHECK(source.reserve(100 * kMiB) + 102 * kMiB == b);
  CHECK(source.used() == 22 * kMiB);
}

TEST_CASE("memory/segment_source: a gap is used again for what fits with its distance") {
  CounterSource source;
  const auto a = *source.allocate(20 * kMiB);
  const auto b = *source.allocate(2 * kMiB);
  source.release(a, 20 * kMiB);
  const auto same = *source.allocate(20 * kMiB);
  CHECK(same < b);
  const auto smaller = *source.allocate(18 * kMiB);
  CHECK(smaller == a);
}

TEST_CASE("memory/segment_source: out of memory past the limit, in whole pages of 2 MiB") {
  CounterSource source(25 * kMiB);
  CHECK(source.capacity() == 25 * kMiB);
  const auto a = source.allocate(21 * kMiB);
  REQUIRE(a);
  CHECK(source.used() == 22 * kMiB);
  CHECK_FALSE(source.allocate(4 * kMiB));
  CHECK_FALSE(source.map(0, 4 * kMiB));
  source.release(*a, 21 * kMiB);
  CHECK(source.used() == 0);
  const auto space = source.reserve(64 * kMiB);
  CHECK(source.map(space, 20 * kMiB));
  CHECK(source.used() == 20 * kMiB);
  source.unmap(space, 20 * kMiB);
  source.unreserve(space, 64 * kMiB);
  CHECK(source.used() == 0);
}

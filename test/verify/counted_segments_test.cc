#include "verify/counted_segments.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

TEST_CASE("verify/counted_segments: segments and mapped pages are held until they are given back") {
  CounterSource counter(8U << 20U);
  CountedSegments segments(counter);
  const auto address = segments.allocate(2U << 20U);
  REQUIRE(address);
  CHECK(segments.held() == Bytes{2U << 20U});
  CHECK_FALSE(segments.allocate(7U << 20U));
  CHECK(segments.held() == Bytes{2U << 20U});
  const std::uint64_t space = segments.reserve(8U << 20U);
  REQUIRE(segments.map(space, 4U << 20U));
  CHECK_FALSE(segments.map(space + (4U << 20U), 4U << 20U));
  CHECK(segments.held() == Bytes{6U << 20U});
  segments.unmap(space, 4U << 20U);
  segments.unreserve(space, 8U << 20U);
  segments.release(*address, 2U << 20U);
  CHECK(segments.held() == Bytes{});
  CHECK(segments.capacity() == counter.capacity());
}

}  // namespace
}  // namespace qlp

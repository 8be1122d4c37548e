#include "base/rounding.h"

#include <cstdint>

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("base/rounding: parts and multiples, of any integer") {
  CHECK(ceil_div(0, 4) == 0);
  CHECK(ceil_div(std::int64_t{4}, 4) == 1);
  CHECK(ceil_div(std::int64_t{5}, 4) == 2);
  CHECK(round_up(std::int64_t{0}, 512) == 0);
  CHECK(round_up(std::uint64_t{512}, 512) == 512);
  CHECK(round_up(std::uint64_t{513}, 512) == 1024);
}

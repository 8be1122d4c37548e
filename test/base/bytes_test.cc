#include "base/bytes.h"

#include <concepts>
#include <limits>

#include <doctest/doctest.h>

using namespace qlp;
using namespace qlp::literals;

namespace {

constexpr Bytes kMost{std::numeric_limits<std::uint64_t>::max()};

template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

// What must not compile: it would hide a negative number or a number without a unit.
static_assert(!Subtractable<Bytes, Bytes>);
static_assert(!Addable<Bytes, int>);
static_assert(!std::convertible_to<std::uint64_t, Bytes>);

}  // namespace

TEST_CASE("base/bytes: sums and products are exact") {
  CHECK(1_KiB + 1_B == Bytes{1025});
  CHECK(3_MiB * 2 == Bytes{6291456});
  CHECK(1_GiB > 1023_MiB);
}

TEST_CASE("base/bytes: what does not fit into 64 bits is refused") {
  CHECK_THROWS_AS(kMost + 1_B, std::overflow_error);
  CHECK_THROWS_AS(kMost * 2, std::overflow_error);
}

TEST_CASE("base/bytes: only a part can be removed") {
  Bytes amount = 10_B;
  CHECK(amount.remove(4_B) == 6_B);
  CHECK_THROWS_AS(amount.remove(7_B), std::underflow_error);
}

TEST_CASE("base/bytes: rounding up ends on a multiple") {
  CHECK(round_up(0_B, 512) == 0_B);
  CHECK(round_up(1_B, 512) == 512_B);
  CHECK(round_up(512_B, 512) == 512_B);
  CHECK(round_up(513_B, 512) == 1024_B);
}

TEST_CASE("base/bytes: a difference has a sign") {
  CHECK(difference(3_B, 5_B).count() == -2);
  CHECK(difference(5_B, 3_B).count() == 2);
}

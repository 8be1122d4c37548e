#include "estimate/verification.h"

#include <limits>

#include <doctest/doctest.h>

#include "report/sample_verification.h"

namespace qlp {
namespace {

TEST_CASE("estimate/verification: a tolerance is bytes and a share of the prediction, either way") {
  const Tolerance exact{}, loose{.bytes = Bytes{10}, .share = 0.01};
  CHECK(exact.allows(Bytes{7}, Bytes{7}));
  CHECK_FALSE(exact.allows(Bytes{7}, Bytes{8}));
  CHECK_FALSE(exact.allows(Bytes{8}, Bytes{7}));
  CHECK(loose.allows(Bytes{1'020}, Bytes{1'000}));
  CHECK(loose.allows(Bytes{980}, Bytes{1'000}));
  CHECK_FALSE(loose.allows(Bytes{1'021}, Bytes{1'000}));
}

TEST_CASE("estimate/verification: only what is judged decides, but a judged figure must be there") {
  Verification v = sample_verification();
  CHECK(v.within_tolerance());
  v.ranks[0].figures[1].measured = Bytes{99};
  CHECK(v.within_tolerance());
  v.ranks[0].figures[0].measured.reset();
  CHECK_FALSE(v.within_tolerance());
}

TEST_CASE("estimate/verification: a rank that did not finish, or a loss that is no number, is no success") {
  Verification v = sample_verification();
  v.ranks[1].losses[0] = std::numeric_limits<double>::quiet_NaN();
  CHECK(v.finished());
  CHECK_FALSE(v.within_tolerance());
  v = sample_verification();
  v.ranks[1].end = RankEnd::stopped;
  CHECK_FALSE(v.finished());
  CHECK_FALSE(v.within_tolerance());
  CHECK_FALSE(v.out_of_memory());
  v.ranks[0].end = RankEnd::out_of_memory;
  CHECK(v.out_of_memory());
  CHECK_FALSE(Verification{}.finished());
}

}  // namespace
}  // namespace qlp

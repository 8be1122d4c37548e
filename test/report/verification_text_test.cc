#include "report/verification_text.h"

#include <limits>

#include <doctest/doctest.h>

#include "report/sample_verification.h"

namespace qlp {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("report/verification_text: measured beside predicted, for every rank, and the residual") {
  const std::string text = verification_text(sample_verification());
  CHECK(has(text, "plan ddp on cuda, 2 ranks, 2 steps, driver 580.65.06\n"));
  CHECK(has(text, "+5000"));
  CHECK(has(text, "-259520"));
  CHECK(has(text, "micro1.forward"));
  CHECK(has(text, "taken from the model"));
  CHECK(has(text, "within tolerance (1% of allocated): furthest off is allocated in peak, by +5000 bytes\n"));
}

TEST_CASE("report/verification_text: what is outside the tolerance is told, and what is exact") {
  Verification v = sample_verification();
  v.tolerance = {};
  CHECK(has(verification_text(v), "outside tolerance (0B of allocated): furthest off is allocated in peak"));
  for (RankVerification& rank : v.ranks) rank.figures[0].measured = rank.figures[0].predicted;
  CHECK(has(verification_text(v), "within tolerance (0B of allocated): every judged figure is as predicted"));
  v.ranks[1].losses[1] = std::numeric_limits<double>::quiet_NaN();
  CHECK(has(verification_text(v),
            "outside tolerance (0B of allocated): every judged figure is as predicted, but a loss is no number"));
}

TEST_CASE("report/verification_text: steps that were skipped are counted, and why no state was made") {
  Verification v = sample_verification();
  v.ranks[0].skipped_steps = v.ranks[1].skipped_steps = {1};
  CHECK(has(verification_text(v), "skipped steps: 1 of 2: a gradient overflowed in float16"));
  CHECK_FALSE(has(verification_text(v), "more --steps"));
  v.ranks[0].skipped_steps = {1, 2};
  CHECK(has(verification_text(v), "skipped steps: 1, 2 of 2"));
  CHECK(has(verification_text(v), "more --steps"));
}

TEST_CASE("report/verification_text: a run that failed tells each rank's last state and words") {
  Verification v = sample_verification();
  for (RankVerification& rank : v.ranks) rank.figures.clear(), rank.losses.clear();
  v.ranks[0].end = RankEnd::died;
  v.ranks[0].state = "micro1.backward";
  v.ranks[0].message = "signal 9 (Killed)";
  v.ranks[0].output = "one\ntwo\n";
  v.ranks[1].end = RankEnd::stopped;
  v.ranks[1].state = "micro1.forward";
  const std::string text = verification_text(v);
  CHECK(
      has(text,
          "rank 0: died in micro1.backward: signal 9 (Killed)\n  | one\n  | two\nrank 1: stopped in micro1.forward\n"));
  CHECK(has(text, "failed: "));
  v.ranks[0].end = RankEnd::out_of_memory;
  CHECK(has(verification_text(v), "out of memory: "));
  v.interrupted = true;
  CHECK(has(verification_text(v), "interrupted\n"));
}

TEST_CASE("report/verification_text: brief is a row for each rank and the verdict") {
  const std::string text = verification_text(sample_verification(), {.brief = true});
  CHECK(text.starts_with("rank "));
  CHECK_FALSE(has(text, "micro1.forward"));
  CHECK(has(text, "within tolerance"));
}

}  // namespace
}  // namespace qlp

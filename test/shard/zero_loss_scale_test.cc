#include "shard/zero_loss_scale.h"

#include <doctest/doctest.h>

using namespace qlp;

// What DynamicLossScaler of DeepSpeed 0.18.3 does in its defaults.
TEST_CASE("shard/zero_loss_scale: the second overflow halves it, and as many good steps as its window double it") {
  ZeroLossScale scale(LossScaleOptions{.loss_scale_window = 3});
  CHECK(scale.value() == 65536);
  scale.update(true);
  CHECK(scale.value() == 65536);
  scale.update(true);
  CHECK(scale.value() == 32768);
  scale.update(true);  // the count starts anew only with the scale
  CHECK(scale.value() == 16384);
  for (int step = 0; step < 3; ++step) scale.update(false);
  CHECK(scale.value() == 16384);
  scale.update(false);
  CHECK(scale.value() == 32768);
  scale.update(true);
  CHECK(scale.value() == 32768);
}

TEST_CASE("shard/zero_loss_scale: a step without an overflow forgives one, where it is told to") {
  ZeroLossScale scale(LossScaleOptions{.initial_scale_power = 4, .consecutive_hysteresis = true});
  for (int turn = 0; turn < 3; ++turn) scale.update(true), scale.update(false);
  CHECK(scale.value() == 16);
}

TEST_CASE("shard/zero_loss_scale: at its least the run ends") {
  ZeroLossScale scale(LossScaleOptions{.initial_scale_power = 1, .hysteresis = 1});
  scale.update(true);
  CHECK(scale.value() == 1);
  CHECK_THROWS_AS(scale.update(true), TrainingStopped);
}

TEST_CASE("shard/zero_loss_scale: one that is given stays, and so does that of other dtypes") {
  ZeroLossScale given(LossScaleOptions{.loss_scale = 128}), none;
  given.update(true), none.update(true);
  CHECK(given.value() == 128);
  CHECK(none.value() == 1);
}

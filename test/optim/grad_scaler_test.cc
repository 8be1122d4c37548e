#include "optim/grad_scaler.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

TEST_CASE("optim/grad_scaler: scale and growth tracker come with the first loss, the flag goes with the step") {
  DryDevice dry;
  GradScaler scaler{{}};
  const Tensor loss = dry.tensor({}, DType::float32);
  dry.recorder.take();
  Tensor scaled = scaler.scale(dry.ctx, loss);
  CHECK(dry.recorder.take() == Events{4, 4, 4});
  scaled = Tensor();
  scaled = scaler.scale(dry.ctx, loss);
  CHECK(dry.recorder.take() == Events{-4, 4});
  scaler.unscale(dry.ctx, {});
  CHECK(dry.recorder.take() == Events{8, 8, -8, 4, -8, 4, -4});
  scaler.update(dry.ctx);
  CHECK(dry.recorder.take() == Events{-4});
}

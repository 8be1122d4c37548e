#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

TEST_CASE("optim/adagrad: sums and step counts are there before the first step, also without a gradient") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::bfloat16}});
  set_grad(job.parameters[1], Tensor());
  job.dry.recorder.take();
  CHECK(job.make(Adagrad{}, {{0}, {1}}) == Events{400, 100, 4, 4});
  CHECK(job.step() == Events{400, 400, -400, -400});
}

TEST_CASE("optim/adagrad: roots and scaled gradients of one dtype stay until those of the next are there") {
  OptimizerJob job({{{100}, DType::bfloat16}, {{10}, DType::float32}});
  job.make(Adagrad{}, {{0, 1}});
  CHECK(job.step() == Events{40, 40, 200, -40, 200, -40, -200, -200});
}

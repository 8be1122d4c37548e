#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// lomo_optim 0.1.1; also seen on a null GPU.
TEST_CASE("optim/lomo: what is left of a backward pass is updated in float32, one by one, and loses its gradient") {
  OptimizerJob job({{{100, 10}, DType::bfloat16}, {{50}, DType::bfloat16}});
  CHECK(job.make(Lomo{}, {{0}, {1}}).empty());
  job.optimizer->finish_backward(job.dry.ctx);
  // A float32 copy of the gradient, which goes; one of the parameter; both names pass on to the next.
  CHECK(job.dry.recorder.take() == Events{4000, -2000, 4000, 200, -4000, -100, 200, -4000, -200, -200});
  for (const Tensor& parameter : job.parameters) CHECK_FALSE(grad_of(parameter).defined());
  job.optimizer->finish_backward(job.dry.ctx);
  CHECK(job.dry.recorder.take().empty());
  CHECK(job.step().empty());
}

TEST_CASE("optim/lomo: float32 parameters need no copies") {
  OptimizerJob job({{{100, 10}, DType::float32}});
  job.make(Lomo{}, {{0}});
  job.optimizer->finish_backward(job.dry.ctx);
  CHECK(job.dry.recorder.take() == Events{-4000});
}

TEST_CASE("optim/lomo: AdaLOMO has sums for rows and columns, or for each element, from the beginning") {
  OptimizerJob job({{{100, 10}, DType::bfloat16}, {{50}, DType::bfloat16}});
  CHECK(job.make(Lomo{true}, {{0}, {1}}) == Events{400, 40, 200});
}

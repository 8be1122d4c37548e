#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

TEST_CASE("optim/lion: one average like the parameter, and nothing more") {
  OptimizerJob job({{{100}, DType::float32}, {{10}, DType::bfloat16}});
  CHECK(job.make(Lion{}, {{0, 1}}).empty());
  CHECK(job.step() == Events{400, 20});
  CHECK(job.step().empty());
  CHECK(job.optimizer->states_alike(DType::float32).count == 1);
}

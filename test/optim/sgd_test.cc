#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

TEST_CASE("optim/sgd: without momentum it takes nothing") {
  OptimizerJob job({{{100}, DType::float32}});
  CHECK(job.make(Sgd{}, {{0}}).empty());
  CHECK(job.step().empty());
}

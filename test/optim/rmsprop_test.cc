#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

TEST_CASE("optim/rmsprop: one tensor a parameter, and the roots of a group at once") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::float32}});
  CHECK(job.make(RmsProp{}, {{0, 1}}).empty());
  CHECK(job.step() == Events{400, 200, 400, 200, -400, -200});
  CHECK(job.step() == Events{400, 200, -400, -200});
}

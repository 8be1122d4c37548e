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

TEST_CASE("optim/sgd: momentum is kept of each parameter, and needs no copies that decay was added to any longer") {
  OptimizerJob job({{{100}, DType::float32}});
  job.make(Sgd{0.9}, {{0}});
  CHECK(job.step() == Events{400});
  CHECK(job.step().empty());
  CHECK(job.optimizer->state().front().state.size() == 1);
  CHECK(job.optimizer->states_alike(DType::float32).count == 1);
}

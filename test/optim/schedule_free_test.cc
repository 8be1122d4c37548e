#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// As recorded with schedulefree 1.4.1 and torch 2.8.0.
TEST_CASE("optim/schedule_free: AdamW divides by one list for all dtypes, which stays until that of the next group") {
  OptimizerJob job({{{300, 200}, DType::float32}, {{128, 512}, DType::bfloat16}, {{300}, DType::float32}});
  CHECK(job.make(ScheduleFree{ScheduleFree::Base::adamw}, {{0, 1}, {2}}).empty());
  CHECK(job.step() ==
        Events{240000, 240000, 131072, 131072, 240000, 131072, 1200, 1200, 1200, -240000, -131072, -1200});
  CHECK(job.step() == Events{240000, 131072, 1200, -240000, -131072, -1200});
}

TEST_CASE("optim/schedule_free: RAdam divides once it trusts its variance, SGD never does") {
  OptimizerJob job({{{300}, DType::float32}});
  job.make(ScheduleFree{ScheduleFree::Base::radam}, {{0}});
  CHECK(job.step() == Events{1200, 1200});
  CHECK(job.step() == Events{1200, -1200});
  job.make(ScheduleFree{ScheduleFree::Base::sgd}, {{0}});
  CHECK(job.step() == Events{1200});
  CHECK(job.step().empty());
}

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// apollo_torch 1.0, whose names hold on to a tensor until they get the next one; also seen on a null GPU.
TEST_CASE("optim/apollo: what is not projected has two averages of its own size") {
  OptimizerJob job({{{300, 200}, DType::float32}});
  CHECK(job.make(Apollo{.low_rank = {.rank = 10}}, {{0}, {}}).empty());
  CHECK(job.step() == Events{240000, 240000, 240000, 240000, -240000, -240000});
  CHECK(job.step() == Events{240000, 240000, -240000, -240000});
}

TEST_CASE("optim/apollo: a tall matrix is projected from the right, by random numbers that are kept") {
  OptimizerJob job({{{300, 200}, DType::float32}});
  job.make(Apollo{.low_rank = {.rank = 10, .update_proj_gap = 100}}, {{}, {0}});
  const Events first = job.step();
  // Random numbers and their quotient, of which the latter stays; the projected gradient and two averages.
  CHECK(Events(first.begin(), first.begin() + 6) == Events{8000, 8000, -8000, 12000, 12000, 12000});
  const Events next = job.step();
  CHECK(Events(next.begin(), next.begin() + 3) == Events{12000, 12000, 12000});
}

TEST_CASE("optim/apollo: projections are made again every so many steps") {
  OptimizerJob job({{{200, 300}, DType::bfloat16}});
  job.make(Apollo{.low_rank = {.rank = 10, .update_proj_gap = 2}}, {{}, {0}});
  const Events first = job.step(), second = job.step(), third = job.step();
  CHECK(first.front() == 240000);  // a copy of the gradient in float32
  CHECK(second.front() == 6000);   // the projected gradient
  CHECK(third.front() == 240000);
}

TEST_CASE("optim/apollo: one factor for the whole matrix takes less than one for each channel") {
  const auto largest_factor = [](Apollo::Scale scale) {
    OptimizerJob job({{{300, 200}, DType::float32}});
    job.make(Apollo{.scale_type = scale, .low_rank = {.rank = 10}}, {{}, {0}});
    job.step();
    std::int64_t sum = 0;
    for (const auto event : job.step()) sum += event > 0 ? event : 0;
    return sum;
  };
  CHECK(largest_factor(Apollo::Scale::tensor) < largest_factor(Apollo::Scale::channel));
}

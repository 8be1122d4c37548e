#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// As recorded with torch-optimi 0.3.3 and torch 2.8.0.
TEST_CASE("optim/stable_adamw: two averages, and what 16-bit parameters lose in rounding") {
  OptimizerJob job({{{300, 200}, DType::float32}, {{128, 512}, DType::bfloat16}});
  CHECK(job.make(StableAdamW{}, {{0, 1}}).empty());
  CHECK(job.step() == Events{240000, 240000, 4, 1, 4, 131072, 131072, 2, 131072, 4});
  CHECK(job.step().empty());
}

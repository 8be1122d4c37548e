#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// As recorded with grokadamw 0.1.2 and torch 2.8.0.
TEST_CASE(
    "optim/grokadamw: three averages come from the host, those of the last parameter stay until the next has its") {
  OptimizerJob job({{{300, 200}, DType::float32}, {{128, 512}, DType::bfloat16}});
  CHECK(job.make(GrokAdamW{}, {{0, 1}}).empty());
  const Events step{240000, 240000,  240000,  4,       4,       -4,     4,       4,       -4,      -4,
                    4,      4,       4,       -4,      -4,      4,      -4,      -4,      -4,      240000,
                    240000, -240000, 240000,  -240000, 131072,  131072, -240000, -240000, 131072,  -240000,
                    4,      2,       -4,      2,       2,       -2,     -2,      2,       2,       2,
                    -2,     -2,      2,       -2,      -2,      -2,     131072,  131072,  -131072, -240000,
                    131072, -131072, -131072, -131072, -131072, -131072};
  CHECK(job.step() == step);
  CHECK(job.step() == step);
}

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

// torch/optim/_muon.py, 2.14, whose names hold on to a tensor until they get the next one.
TEST_CASE("optim/muon: one average; products in bfloat16 over the shorter side, five times") {
  OptimizerJob job({{{300, 200}, DType::float32}});
  CHECK(job.make(Muon{}, {{0}}).empty());
  Events update{240000, 120000, 2, 2, -2, -2, 80000, 80000, 120000, -120000};
  for (int i = 0; i < 4; ++i)
    for (const auto event : {80000, -80000, 80000, -80000, 120000, -120000}) update.push_back(event);
  for (const auto event : {-80000, -80000, -240000, -120000}) update.push_back(event);
  Events first = update;
  first.insert(first.begin(), 240000);  // the momentum, kept
  CHECK(job.step() == first);
  CHECK(job.step() == update);
}

#include <algorithm>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"
#include "tensor/svd.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

namespace {

constexpr std::int64_t kFloat = 4;
std::int64_t workspace(std::int64_t m, std::int64_t n) { return kFloat * gesvdj_workspace(m, n, CuSolver::v11_7_3); }
Events first(const Events& events, std::ptrdiff_t count) { return {events.begin(), events.begin() + count}; }

}  // namespace

// galore_torch 1.0, whose names hold on to a tensor until they get the next one; also seen on a null GPU.
TEST_CASE("optim/galore: what is not projected has two averages of its own size") {
  OptimizerJob job({{{300, 200}, DType::float32}});
  CHECK(job.make(GaLore{.low_rank = {.rank = 10}}, {{0}, {}}).empty());
  CHECK(job.step() == Events{240000, 240000, 240000, 240000, -240000, -240000});
  CHECK(job.step() == Events{240000, 240000, -240000, -240000});
}

TEST_CASE("optim/galore: a tall matrix is projected by its first right vectors, cast to its dtype") {
  OptimizerJob job({{{300, 200}, DType::bfloat16}});
  job.make(GaLore{.low_rank = {.rank = 10}}, {{}, {0}});
  const std::int64_t size = workspace(300, 200);
  const Events step = job.step();
  CHECK(first(step, 24) == Events{240000,                                // the gradient in float32
                                  240000,  160000,  800,   4,            // vectors, values, what went wrong
                                  240000,  size,    -size, -240000,      // within cuSOLVER, which overwrites a copy
                                  1,       1,       -1,    -1,      -4,  // nothing did
                                  400,     12000,   -400,                // left vectors times values, which nobody uses
                                  4000,                                  // the right vectors that are kept
                                  -240000, -240000, -800,  -160000, -12000, 6000});  // the gradient in their space
  CHECK(job.step() == Events{6000, 6000, 6000, 120000, 120000, -120000, -6000, -6000, -6000, -120000});
}

TEST_CASE("optim/galore: vectors in the SVD's own dtype stay with all that were found") {
  OptimizerJob job({{{200, 300}, DType::float32}});
  job.make(GaLore{.low_rank = {.rank = 10}}, {{}, {0}});
  job.step();
  std::int64_t kept = 0;
  for (const auto& entry : job.optimizer->state())
    for (const Tensor& tensor : entry.state) kept += static_cast<std::int64_t>(tensor.storage().bytes());
  CHECK(kept == kFloat * (200 * 200 + 2 * 10 * 300));
}

TEST_CASE("optim/galore: vectors are found again every so many steps") {
  OptimizerJob job({{{200, 300}, DType::bfloat16}});
  job.make(GaLore{.low_rank = {.rank = 10, .update_proj_gap = 2}}, {{}, {0}});
  const Events one = job.step(), two = job.step(), three = job.step();
  CHECK(one.front() == 240000);
  CHECK(two.front() == 6000);
  CHECK(three.front() == 240000);
}

TEST_CASE("optim/galore: a projection from both sides keeps both sides' vectors, and averages of a small square") {
  OptimizerJob job({{{300, 200}, DType::bfloat16}});
  job.make(GaLore{.low_rank = {.rank = 10, .proj_type = ProjectionSide::full}}, {{}, {0}});
  job.step();
  CHECK(job.step() ==
        Events{4000, 200, -4000, 200, 200, 6000, 120000, -6000, 120000, -120000, -200, -200, -200, -120000});
}

TEST_CASE("optim/galore: Adafactor projects a gradient in float32") {
  OptimizerJob job({{{300, 200}, DType::bfloat16}});
  job.make(GaLore{.base = GaLore::Base::adafactor, .low_rank = {.rank = 10}}, {{}, {0}});
  CHECK(first(job.step(), 4) == Events{240000, 240000, 160000, 800});
  const Events next = job.step();
  CHECK(first(next, 3) == Events{240000, 12000, -240000});
  std::int64_t kept = 0;
  for (const auto& entry : job.optimizer->state())
    for (const Tensor& tensor : entry.state) kept += static_cast<std::int64_t>(tensor.storage().bytes());
  CHECK(kept == kFloat * (200 * 200 + 300 + 10 + 1));
}

TEST_CASE("optim/galore: in 8 bits a parameter moves, and its gradient is what it was projected to") {
  OptimizerJob job({{{300, 200}, DType::bfloat16}});
  job.make(GaLore{.base = GaLore::Base::adamw_8bit, .low_rank = {.rank = 100}}, {{}, {0}});
  job.step();
  CHECK(grad_of(job.parameters[0]).shape() == Shape{300, 100});
  set_grad(job.parameters[0], job.dry.tensor({300, 200}, DType::bfloat16));
  job.dry.recorder.take();
  const Events next = job.step();
  CHECK(first(next, 4) == Events{60000, 120000, 60000, -120000});
  CHECK(std::count(next.begin(), next.end(), 120000) == 3);  // the copy, and the update before and after its scale
}

TEST_CASE("optim/galore: in 8 bits by layers each parameter has maps of its own") {
  constexpr std::int64_t kMap = kFloat * 256;
  const auto maps = [&](bool layerwise) {
    OptimizerJob job({{{300, 200}, DType::bfloat16}, {{300, 200}, DType::bfloat16}});
    job.make(GaLore{.base = GaLore::Base::adamw_8bit, .layerwise = layerwise, .low_rank = {.rank = 100}}, {{0}, {1}});
    const Events step = job.step();
    return std::count(step.begin(), step.end(), kMap);
  };
  CHECK(maps(false) == 2);
  CHECK(maps(true) == 4);
}

// As recorded with torch 2.8.0 and 2.14.1: a key matrix [512, 2048] of which each of four ranks has 128 rows.
TEST_CASE("optim/galore: rows that ranks share are gathered for the vectors, and projected to parts of a sum") {
  OptimizerJob job({{{128, 2048}, DType::bfloat16}});
  job.make(GaLore{.low_rank = {.rank = 64, .update_proj_gap = 2}}, {{}, {0}},
           {.cut = {{job.parameters.front(), {.group = {.size = 4}, .whole = 512, .first = 128}}}});
  const std::int64_t size = workspace(512, 2048);
  CHECK(job.step() ==
        Events{1048576, 4194304,                                           // the part in float32, the whole
               1048576, 4194304,  2048,     4,                             // vectors, values, what went wrong
               4194304, size,     -size,    -4194304,                      // within cuSOLVER
               1,       1,        -1,       -1,       -4,       -4194304,  // nothing did
               16384,   524288,   -16384,                                  // values times right vectors
               65536,   -1048576, -1048576, -2048,    -4194304, -524288,   // the left vectors that are kept
               16384,   262144,   -16384,                                  // those of these rows times them
               262144,  262144,                                            // averages
               262144,  -262144,  262144,   262144,   -262144,  -262144,   // the sum, each time it is used
               262144,  262144,                                            // root and quotient
               2097152, 2097152,  -2097152, -262144,                       // all rows of the update, and scaled
               524288,  -524288,                                           // its rows of this rank
               -262144, -262144,  -2097152});                              // the names
}

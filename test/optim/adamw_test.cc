#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

TEST_CASE("optim/adamw: by lists it keeps two tensors a parameter, and takes the roots of a group at once") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::float32}, {{10}, DType::float32}});
  CHECK(job.make(AdamW{}, {{0, 1}, {2}}).empty());
  CHECK(job.step() == Events{400, 400, 200, 200, 400, 200, -400, -200, 40, 40, 40, -40});
  CHECK(job.step() == Events{400, 200, -400, -200, 40, -40});
}

TEST_CASE("optim/adamw: the list of one dtype stays beside that of the next; the last dtype comes first") {
  OptimizerJob job({{{100}, DType::bfloat16}, {{10}, DType::float32}});
  job.make(AdamW{}, {{0, 1}});
  job.step();
  CHECK(job.step() == Events{40, 200, -40, -200});
}

TEST_CASE("optim/adamw: fused, it keeps its step count on the device and takes nothing more") {
  OptimizerJob job({{{100}, DType::bfloat16}});
  job.make(AdamW{AdamW::Loop::fused}, {{0}});
  CHECK(job.step() == Events{4, 200, 200});
  CHECK(job.step().empty());
}

TEST_CASE("optim/adamw: one by one it takes a root and a quotient, which stays until the next is there") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::float32}});
  job.make(AdamW{AdamW::Loop::forloop}, {{0, 1}});
  job.step();
  CHECK(job.step() == Events{400, 400, -400, 200, 200, -400, -200, -200});
}

TEST_CASE("optim/adamw: parameters without a gradient get no state") {
  OptimizerJob job({{{100}, DType::float32}, {{50}, DType::float32}});
  set_grad(job.parameters[0], Tensor());
  job.dry.recorder.take();
  job.make(AdamW{}, {{0, 1}});
  CHECK(job.step() == Events{200, 200, 200, -200});
}

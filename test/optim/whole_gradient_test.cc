#include "optim/whole_gradient.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

namespace {

/// One parameter of 100 elements in float32, a third of a tensor whose gradient is whole. Gives its first step.
Events first_step(const OptimizerKind& kind) {
  OptimizerJob job({{{100}, DType::float32}});
  autograd_data(job.parameters[0]).whole_grad = Shape{300};
  job.make(kind, {{0}});
  return job.step();
}

}  // namespace

TEST_CASE("optim/whole_gradient: a rank's part is copied for each time that an operation names the gradient") {
  CHECK(first_step(Sgd{}) == Events{400, -400});
  CHECK(first_step(RmsProp{}) == Events{400, 400, 400, -400, -400, 400, 400, -400, -400});
  CHECK(first_step(AdamW{AdamW::Loop::fused}) == Events{4, 400, 400, 400, -400});
}

TEST_CASE("optim/whole_gradient: what is made of the gradient is as large as the whole") {
  CHECK(first_step(Adagrad{}) == Events{400, 400, -400, -400, 400, 1200, 400, -400, -1200, -400});
}

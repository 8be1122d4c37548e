#include "optim/decayed_gradients.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_job.h"

using namespace qlp;
using test::Events;
using test::OptimizerJob;

namespace {

/// The second step, with weight decay on the first of two groups.
Events second_step(const OptimizerKind& kind) {
  OptimizerJob job({{{100}, DType::float32}, {{300}, DType::float32}});
  job.make(kind, {{0}, {1}});
  job.optimizer->set_weight_decays({0.1, 0});
  job.step();
  return job.step();
}

}  // namespace

// Peaks of the optimizer's step with weight_decay 0.1 are those of torch 2.8.0 to the byte (two layers of Llama 3.2 1B
// on one GPU: 4,628,758,676 with SGD, 7,703,224,548 with Adagrad, 7,703,224,468 with RMSprop).
TEST_CASE("optim/decayed_gradients: copies of a group's gradients, where the group decays") {
  CHECK(second_step(Sgd{}) == Events{400, -400});
  CHECK(second_step(RmsProp{}) == Events{400, 400, -400, -400, 1200, -1200});
}

TEST_CASE("optim/decayed_gradients: Adagrad scales the copies in place, where it would make others") {
  CHECK(second_step(Adagrad{}) == Events{400, 400, -400, -400, 1200, 1200, -1200, -1200});
}

TEST_CASE("optim/decayed_gradients: others take nothing for it") {
  const auto taken = [](const OptimizerKind& kind, double decay) {
    OptimizerJob job({{{16, 16}, DType::float32}});
    job.make(kind, {{0}});
    job.optimizer->set_weight_decays({decay});
    job.step();
    return job.step();
  };
  for (const OptimizerKind& kind : std::vector<OptimizerKind>{AdamW{}, Adafactor{}, ScheduleFree{}, Muon{}})
    CHECK(taken(kind, 0.1) == taken(kind, 0));
}

#include "kernels/averages.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/rmsprop: one step, at the edges of blocks, of numbers and of codes") {
  compare_updates(UpdateRule::rmsprop, {false}, {.lr = 0.01, .alpha = 0.99, .eps = 1e-8, .weight_decay = 0.1});
}

TEST_CASE("kernels/rmsprop: from nothing a parameter goes by the rate over the root of what an average takes up") {
  Bench bench;
  Twin p(DType::float32, {2}), grad(DType::float32, {2}), average(DType::float32, {2});
  bench.set(p, {1, 1}), bench.set(grad, {2, -0.5}), bench.set(average, {0, 0});
  optimizers(bench.device())
      .update(0, UpdateRule::rmsprop, p.device, grad.device, {{.values = average.device, .codes = {}}},
              {.lr = 0.125, .alpha = 0.75, .eps = 0});
  CHECK(bench.on_device(p) == std::vector<double>{0.75, 1.25});
  CHECK(bench.on_device(average) == std::vector<double>{1, 0.0625});
}

}  // namespace
}  // namespace qlp::test

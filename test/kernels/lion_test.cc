#include "kernels/averages.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/lion: one step, at the edges of blocks, of numbers and of codes") {
  compare_updates(UpdateRule::lion, {true}, {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1});
}

TEST_CASE("kernels/lion: a parameter goes by the rate against the sign of what is averaged") {
  Bench bench;
  Twin p(DType::float32, {4}), grad(DType::float32, {4}), average(DType::float32, {4});
  bench.set(p, {1, 1, 1, 1}), bench.set(grad, {3, -0.5, 0, 1}), bench.set(average, {0, 0, 0, -1});
  optimizers(bench.device())
      .update(0, UpdateRule::lion, p.device, grad.device, {{.values = average.device, .codes = {}}},
              {.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75});
  CHECK(bench.on_device(p) == std::vector<double>{0.75, 1.25, 1, 1});
  CHECK(bench.on_device(average) == std::vector<double>{0.75, -0.125, 0, -0.5});
}

}  // namespace
}  // namespace qlp::test

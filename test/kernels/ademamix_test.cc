#include "kernels/averages.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/ademamix: one step, at the edges of blocks, of numbers and of codes") {
  compare_updates(
      UpdateRule::ademamix, {true, true, false},
      {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.99, .beta3 = 0.999, .alpha = 5, .weight_decay = 0.1, .step = 3});
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/softmax: and its logarithm, forward and backward, for widths at the edges of blocks") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {1, 31, 256, 257, 1000})
      for (const bool log : {false, true}) {
        Twin x(dtype, {3, width}), y(dtype, {3, width}), grad(dtype, {3, width}), dx(dtype, {3, width});
        bench.randomize(x, -8, 8), bench.randomize(grad);
        bench.compare([&](Kernels& k, const auto& at) { k.softmax(0, at(y), at(x), log); }, {&y}, tolerance_of(dtype));
        bench.randomize(y, log ? -8 : 0, log ? 0 : 1);
        bench.compare([&](Kernels& k, const auto& at) { k.softmax_backward(0, at(dx), at(grad), at(y), log); }, {&dx},
                      tolerance_of(dtype) * 4);
      }
}

TEST_CASE("kernels/softmax: in place, of large scores, on rows with gaps") {
  Bench bench;
  Twin x(DType::float32, {2, 3, 80}, {2, 3, 40}, {240, 80, 2});
  bench.randomize(x, 900, 1000);
  bench.compare([&](Kernels& k, const auto& at) { k.softmax(0, at(x), at(x), false); }, {&x}, 1e-4);
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/gated: SwiGLU and GeGLU forward and backward, at the edges of blocks") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {1, 128, 129, 300})
      for (const bool gelu : {false, true}) {
        Twin gate(dtype, {2, width}), up(dtype, {2, width}), out(dtype, {2, width}), grad(dtype, {2, width});
        bench.randomize(gate, -4, 4), bench.randomize(up), bench.randomize(grad);
        bench.compare([&](Kernels& k, const auto& at) { k.gated_product(0, at(out), at(gate), at(up), gelu); }, {&out},
                      tolerance_of(dtype));
        bench.compare(
            [&](Kernels& k, const auto& at) { k.gated_product_backward(0, at(gate), at(up), at(grad), gelu); },
            {&gate, &up}, tolerance_of(dtype));
      }
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/rms_norm: forward and backward, for widths at the edges of blocks") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {1, 32, 33, 256, 300})
      for (const double offset : {0.0, 1.0}) {
        Twin x(dtype, {19, width}), gain(dtype, {width}), out(dtype, {19, width}), rstd(DType::float32, {19});
        bench.randomize(x, -2, 2), bench.randomize(gain);
        bench.compare(
            [&](Kernels& k, const auto& at) { k.rms_norm(0, at(out), at(rstd), at(x), at(gain), 1e-5, offset); },
            {&out, &rstd}, tolerance_of(dtype));
        Twin grad(dtype, {19, width}), dgain(DType::float32, {width});
        bench.randomize(grad), bench.randomize(rstd, 0.5, 1.5);
        bench.compare(
            [&](Kernels& k, const auto& at) {
              k.rms_norm_backward(0, at(grad), at(dgain), at(grad), at(x), at(gain), at(rstd), offset);
            },
            {&grad, &dgain}, tolerance_of(dtype) * 2);
      }
}

TEST_CASE("kernels/rms_norm: without a gradient of the gain, beside the gradient of the result") {
  Bench bench;
  Twin x(DType::float32, {3, 40}), gain(DType::float32, {40}), rstd(DType::float32, {3}), grad(DType::float32, {3, 40});
  Twin dx(DType::float32, {3, 40});
  bench.randomize(x), bench.randomize(gain), bench.randomize(rstd, 0.5, 1.5), bench.randomize(grad);
  bench.compare(
      [&](Kernels& k, const auto& at) { k.rms_norm_backward(0, at(dx), {}, at(grad), at(x), at(gain), at(rstd), 0); },
      {&dx}, 1e-5);
}

}  // namespace
}  // namespace qlp::test

#include <cmath>

#include "kernels/averages.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/adamw_4bit: one step of moments that lie two in a byte") {
  Bench bench;
  Twin code1(DType::float32, {16}), code2(DType::float32, {16});
  std::vector<double> curve, line;
  for (int i = 1; i <= 16; ++i) {
    const double x = (i - 8) / 8.0;
    curve.push_back(x * std::abs(x)), line.push_back(i / 16.0);
  }
  bench.set(code1, curve), bench.set(code2, line);
  for (const DType dtype : kFloats)
    for (const std::int64_t blocksize : {2, 256, 512, 2048})
      for (const std::int64_t blocks : {1, 3}) {
        CAPTURE(blocksize);
        const std::int64_t count = blocks * blocksize;
        Twin p(dtype, {count}), grad(dtype, {count}), m(DType::uint8, {count / 2}), v(DType::uint8, {count / 2});
        Twin most1(DType::float32, {blocks}), most2(DType::float32, {blocks});
        bench.randomize(p), bench.randomize(grad), bench.randomize(m, 0, 255.9), bench.randomize(v, 0, 255.9);
        bench.randomize(most1, 0.5, 1), bench.randomize(most2, 0.5, 1);
        bench.compare(
            [&](Kernels& on, const auto& at) {
              optimizers(on).update(0, UpdateRule::adamw, at(p), at(grad),
                                    {{.values = at(m), .codes = {at(most1), at(code1), blocksize}},
                                     {.values = at(v), .codes = {at(most2), at(code2), blocksize}}},
                                    {.lr = 0.01, .weight_decay = 0.1, .step = 3});
            },
            {&p, &most1, &most2, &m, &v}, tolerance_of(dtype));
      }
}

}  // namespace
}  // namespace qlp::test

#include "kernels/averages.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/stable_adamw: one step, at the edges of blocks and past what their parts fill") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t count : {1, 255, 256, 257, 5000, 300000}) {
      if (count > 5000 && dtype != DType::float32) continue;
      CAPTURE(count);
      const bool compensates = dtype != DType::float32;
      Twin p(dtype, {count}), grad(dtype, {count}), m(dtype, {count}), v(dtype, {count});
      Twin lost(compensates ? dtype : DType::uint8, {compensates ? count : 1});
      bench.randomize(p), bench.randomize(grad, -3, 3), bench.randomize(m), bench.randomize(v, 0.1, 1);
      bench.randomize(lost, 0, 0.001);
      std::vector<Twin*> written{&p, &m, &v};
      if (compensates) written.push_back(&lost);
      bench.compare(
          [&](Kernels& on, const auto& at) {
            optimizers(on).stable_adamw(0, at(p), at(grad), at(m), at(v), at(lost),
                                        {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .step = 3});
          },
          written, tolerance_of(dtype));
    }
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"

namespace qlp::test {
namespace {

constexpr AdamWNumbers kNumbers{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .step = 3};

TEST_CASE("kernels/adamw: one step, at the edges of blocks, for every float type") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t count : {1, 255, 256, 257, 1000}) {
      Twin p(dtype, {count}), grad(dtype, {count}), m(dtype, {count}), v(dtype, {count});
      bench.randomize(p), bench.randomize(grad), bench.randomize(m), bench.randomize(v, 0.1, 1);
      bench.compare([&](Kernels& k, const auto& at) { k.adamw(0, at(p), at(grad), at(m), at(v), kNumbers); },
                    {&p, &m, &v}, tolerance_of(dtype));
    }
}

TEST_CASE("kernels/adamw: the first step from moments of zero") {
  Bench bench;
  Twin p(DType::float32, {3}), grad(DType::float32, {3}), m(DType::float32, {3}), v(DType::float32, {3});
  bench.set(p, {1, 2, 3}), bench.set(grad, {0.5, -2, 0}), bench.set(m, {0, 0, 0}), bench.set(v, {0, 0, 0});
  AdamWNumbers numbers = kNumbers;
  numbers.step = 1, numbers.weight_decay = 0;
  bench.device().adamw(0, p.device, grad.device, m.device, v.device, numbers);
  const auto after = bench.on_device(p);  // by lr against the sign of the gradient
  CHECK(after[0] == doctest::Approx(0.99));
  CHECK(after[1] == doctest::Approx(2.01));
  CHECK(after[2] == 3);
}

TEST_CASE("kernels/adamw: moments of 8 bits, block by block") {
  Bench bench;
  std::vector<double> with_sign, without;
  for (int i = 0; i < 256; ++i) {
    const double x = (i - 127) / 128.0;
    with_sign.push_back(x * (x < 0 ? -x : x)), without.push_back(i / 255.0 * (i / 255.0));
  }
  Twin code1(DType::float32, {256}), code2(DType::float32, {256});
  bench.set(code1, with_sign), bench.set(code2, without);
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const std::int64_t blocksize : {256, 2048})
      for (const std::int64_t count : {4096, 4097, 5000}) {
        const std::int64_t blocks = (count + blocksize - 1) / blocksize;
        Twin p(dtype, {count}), grad(dtype, {count}), m(DType::uint8, {count}), v(DType::uint8, {count});
        Twin most1(DType::float32, {blocks}), most2(DType::float32, {blocks});
        bench.randomize(p), bench.randomize(grad), bench.randomize(m, 0, 255.9), bench.randomize(v, 1, 255.9);
        bench.randomize(most1, 0.5, 1), bench.randomize(most2, 0.5, 1);
        bench.compare(
            [&](Kernels& k, const auto& at) {
              k.adamw_8bit(0, at(p), at(grad), at(m), {at(most1), at(code1), blocksize}, at(v),
                           {at(most2), at(code2), blocksize}, kNumbers);
            },
            {&p, &most1, &most2, &m, &v}, tolerance_of(dtype));
      }
}

}  // namespace
}  // namespace qlp::test

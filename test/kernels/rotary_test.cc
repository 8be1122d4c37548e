#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/rotary: heads as they lie after a transpose turn forward and back") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {2, 64, 96}) {
      Twin x(dtype, {2, 5, 3, width}, {2, 3, 5, width}, {15 * width, width, 3 * width, 1});
      Twin cos(DType::float32, {1, 5, width}), sin(DType::float32, {1, 5, width});
      bench.randomize(x), bench.randomize(cos), bench.randomize(sin);
      for (const bool inverse : {false, true})
        bench.compare([&](Kernels& k, const auto& at) { k.rotate_in_place(0, at(x), at(cos), at(sin), inverse); }, {&x},
                      tolerance_of(dtype));
    }
}

TEST_CASE("kernels/rotary: the inverse undoes a turn") {
  Bench bench;
  Twin x(DType::float32, {1, 2, 2, 4}), cos(DType::float32, {2, 4}), sin(DType::float32, {2, 4});
  const double c = 0.6, s = 0.8;
  bench.randomize(x), bench.set(cos, {c, c, c, c, 1, 0, 1, 0}), bench.set(sin, {s, s, s, s, 0, 1, 0, 1});
  const auto before = bench.on_device(x);
  bench.device().rotate_in_place(0, x.device, cos.device, sin.device, false);
  CHECK(bench.on_device(x) != before);
  bench.device().rotate_in_place(0, x.device, cos.device, sin.device, true);
  const auto after = bench.on_device(x);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == doctest::Approx(before[i]).epsilon(1e-6));
}

}  // namespace
}  // namespace qlp::test

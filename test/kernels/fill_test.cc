#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/fill: one value, counted and random numbers are those of the host") {
  Bench bench;
  for (const DType dtype : kFloats) {
    Twin out(dtype, {2, 600}, {2, 257}, {600, 2});
    bench.compare([&](Kernels& k, const auto& at) { k.fill(0, at(out), 0.3); }, {&out}, 0);
    bench.compare([&](Kernels& k, const auto& at) { k.random_uniform(0, at(out), 7, 1234567, -0.02, 0.02); }, {&out},
                  0);
    bench.compare([&](Kernels& k, const auto& at) { k.bernoulli(0, at(out), 9, 77, 0.05); }, {&out}, 0);
  }
  Twin positions(DType::int64, {3, 100});
  bench.compare([&](Kernels& k, const auto& at) { k.arange(0, at(positions), 5); }, {&positions}, 0);
}

TEST_CASE("kernels/fill: a causal band, with a window and without") {
  Bench bench;
  for (const std::int64_t window : {0, 1, 5}) {
    Twin out(DType::bfloat16, {2, 1, 17, 19});
    bench.compare([&](Kernels& k, const auto& at) { k.causal_band(0, at(out), window, 0, -1e30); }, {&out}, 0);
  }
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/gemm: at the edges of tiles, for every type") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const auto& [m, n, k] : {std::array{1, 1, 1}, {15, 16, 17}, {33, 20, 40}, {16, 48, 5}}) {
      Twin a(dtype, {m, k}), b(dtype, {k, n}), out(dtype, {m, n});
      bench.randomize(a), bench.randomize(b), bench.randomize(out);
      bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(a), at(b), 1, 0); }, {&out},
                    tolerance_of(dtype));
      bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(a), at(b), 0.5, 1); }, {&out},
                    tolerance_of(dtype));
    }
}

TEST_CASE("kernels/gemm: transposed operands, batches, and one operand for all of a batch") {
  Bench bench;
  Twin a(DType::bfloat16, {3, 20, 18}, {3, 18, 20}, {360, 1, 18}), b(DType::bfloat16, {20, 9}, {3, 20, 9}, {0, 9, 1});
  Twin out(DType::float32, {3, 18, 9});
  bench.randomize(a), bench.randomize(b);
  bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(a), at(b), 1, 0); }, {&out}, 1e-5);
}

TEST_CASE("kernels/gemm: what the result held is not looked at, even if it is no number") {
  Bench bench;
  Twin a(DType::float32, {4, 4}), b(DType::float32, {4, 4}), out(DType::float32, {4, 4});
  bench.randomize(a), bench.randomize(b);
  bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(a), at(b), 1, 0); }, {&out}, 1e-5);
  for (const double value : bench.on_device(out)) CHECK(value == value);
}

TEST_CASE("kernels/gemm: a sum over nothing is zero") {
  Bench bench;
  Twin a(DType::float32, {3, 0}), b(DType::float32, {0, 2}), out(DType::float32, {3, 2});
  bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(a), at(b), 1, 0); }, {&out}, 0);
}

}  // namespace
}  // namespace qlp::test

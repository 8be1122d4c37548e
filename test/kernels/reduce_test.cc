#include "kernels/bench.h"

namespace qlp::test {
namespace {

constexpr Reduce kReductions[] = {Reduce::sum, Reduce::sum_of_squares, Reduce::max, Reduce::max_abs};

struct Case {
  Shape x, out;
};

TEST_CASE("kernels/reduce: over every choice of dimensions") {
  Bench bench;
  const Case cases[] = {{{257}, {1}},
                        {{1}, {1}},
                        {{5, 33}, {5, 1}},
                        {{33, 5}, {1, 5}},
                        {{3, 4, 5}, {3, 1, 5}},
                        {{3, 4, 5}, {1, 4, 1}},
                        {{2, 3, 4, 5, 6}, {2, 1, 4, 1, 6}},
                        {{4, 3}, {4, 3}}};
  for (const DType dtype : kFloats)
    for (const auto& [shape, result] : cases) {
      Twin x(dtype, shape), out(DType::float32, result);
      bench.randomize(x);
      for (const Reduce op : kReductions)
        bench.compare([&](Kernels& k, const auto& at) { k.reduce(0, op, at(out), at(x), 0.25); }, {&out}, 1e-5);
    }
}

TEST_CASE("kernels/reduce: many blocks share one result") {
  Bench bench;
  for (const std::int64_t count : {4096, 4097, 20'000}) {
    Twin x(DType::bfloat16, {3, count}), out(DType::float32, {3, 1}), all(DType::float32, {1, 1});
    bench.randomize(x, 0, 1);
    for (const Reduce op : kReductions) {
      bench.compare([&](Kernels& k, const auto& at) { k.reduce(0, op, at(out), at(x), 1); }, {&out}, 1e-5);
      bench.compare([&](Kernels& k, const auto& at) { k.reduce(0, op, at(all), at(x), 1); }, {&all}, 1e-5);
    }
  }
}

TEST_CASE("kernels/reduce: of an operand with gaps, in any order of strides") {
  Bench bench;
  Twin x(DType::float32, {7, 5, 6}, {5, 7, 3}, {6, 30, 2}), out(DType::bfloat16, {5, 1, 3});
  bench.randomize(x);
  bench.compare([&](Kernels& k, const auto& at) { k.reduce(0, Reduce::sum, at(out), at(x), 1); }, {&out}, 1.0 / 128);
}

TEST_CASE("kernels/reduce: what is no number stays") {
  Bench bench;
  Twin x(DType::float32, {300}), zero(DType::float32, {300}), out(DType::float32, {1});
  bench.randomize(x), bench.compare([&](Kernels& k, const auto& at) { k.fill(0, at(zero), 0); }, {&zero}, 0);
  bench.compare([&](Kernels& k, const auto& at) { k.binary(0, Binary::div, at(zero), at(zero), at(zero), 0); }, {&zero},
                0);
  for (const Reduce op : kReductions)
    bench.compare([&](Kernels& k, const auto& at) { k.reduce(0, op, at(out), at(zero), 1); }, {&out}, 0);
}

}  // namespace
}  // namespace qlp::test

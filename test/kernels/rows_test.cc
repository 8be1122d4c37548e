#include "kernels/bench.h"

namespace qlp::test {
namespace {

TEST_CASE("kernels/rows: an embedding gathers its rows") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {1, 64, 300}) {
      Twin table(dtype, {9, width}), index(DType::int64, {5}), out(dtype, {5, width});
      bench.randomize(table), bench.set(index, {8, 0, 3, 3, 7});
      bench.compare([&](Kernels& k, const auto& at) { k.gather_rows(0, at(out), at(table), at(index)); }, {&out}, 0);
    }
}

TEST_CASE("kernels/rows: columns are rows of a table that is turned, as an adapter of an embedding looks them up") {
  Bench bench;
  for (const DType dtype : kFloats) {
    Twin table(dtype, {4, 9}, {9, 4}, {1, 9}), index(DType::int64, {5}), out(dtype, {5, 4});
    bench.randomize(table), bench.set(index, {8, 0, 3, 3, 7});
    bench.compare([&](Kernels& k, const auto& at) { k.gather_rows(0, at(out), at(table), at(index)); }, {&out}, 0);
  }
}

TEST_CASE("kernels/rows: its gradient adds up rows that are named more than once") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::int64_t width : {1, 64, 300}) {
      Twin out(dtype, {9, width}), rows(dtype, {7, width}), index(DType::int64, {7});
      bench.randomize(out), bench.randomize(rows), bench.set(index, {8, 0, 3, 3, 7, 3, 8});
      bench.compare([&](Kernels& k, const auto& at) { k.scatter_add_rows(0, at(out), at(rows), at(index)); }, {&out},
                    tolerance_of(dtype));
    }
}

TEST_CASE("kernels/rows: more names than a block has threads") {
  Bench bench;
  std::vector<double> names;
  for (int n = 0; n < 600; ++n) names.push_back(n * 7 % 13);
  Twin out(DType::float32, {13, 3}), rows(DType::bfloat16, {600, 3}), index(DType::int64, {600});
  bench.randomize(out), bench.randomize(rows), bench.set(index, names);
  bench.compare([&](Kernels& k, const auto& at) { k.scatter_add_rows(0, at(out), at(rows), at(index)); }, {&out}, 1e-5);
}

TEST_CASE("kernels/rows: rows of more than one dimension") {
  Bench bench;
  Twin table(DType::float32, {4, 2, 6}, {4, 2, 3}, {12, 6, 2}), index(DType::int64, {3}),
      out(DType::float32, {3, 2, 3});
  bench.randomize(table), bench.set(index, {2, 2, 0});
  bench.compare([&](Kernels& k, const auto& at) { k.gather_rows(0, at(out), at(table), at(index)); }, {&out}, 0);
}

}  // namespace
}  // namespace qlp::test

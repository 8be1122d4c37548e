#include "kernels/bench.h"
#include "tensor/routing_kernels.h"

namespace qlp::test {
namespace {

RoutingKernels& routing(Kernels& kernels) { return dynamic_cast<RoutingKernels&>(kernels); }

TEST_CASE("kernels/routing: the greatest of each row, of equal ones the first") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const auto& [n, k] : {std::array{1, 1}, {6, 2}, {32, 8}, {33, 33}, {128, 8}}) {
      Twin x(dtype, {5, n}), values(dtype, {5, k}), indices(DType::int64, {5, k});
      bench.randomize(x, 0, 1);
      bench.compare([&](Kernels& on, const auto& at) { routing(on).topk(0, at(values), at(indices), at(x)); },
                    {&values, &indices}, 0);
      std::vector<double> alike;
      for (int i = 0; i < 5 * n; ++i) alike.push_back(i % 3);
      bench.set(x, alike);
      bench.compare([&](Kernels& on, const auto& at) { routing(on).topk(0, at(values), at(indices), at(x)); },
                    {&values, &indices}, 0);
    }
}

TEST_CASE("kernels/routing: values at places of each row, and back") {
  Bench bench;
  Twin x(DType::float32, {3, 40}), at_places(DType::float32, {3, 2}), places(DType::int64, {3, 2});
  bench.randomize(x), bench.set(places, {39, 0, 7, 8, 1, 31});
  bench.compare([&](Kernels& on, const auto& at) { routing(on).gather_last(0, at(at_places), at(x), at(places)); },
                {&at_places}, 0);
  bench.compare([&](Kernels& on, const auto& at) { routing(on).scatter_last(0, at(x), at(at_places), at(places)); },
                {&x}, 0);
}

TEST_CASE("kernels/routing: single elements, and back to their places") {
  Bench bench;
  for (const DType dtype : kFloats) {
    Twin x(dtype, {300, 3}), picked(dtype, {4, 1}), rows(DType::int64, {4}), columns(DType::int64, {4});
    bench.randomize(x), bench.set(rows, {299, 0, 7, 255}), bench.set(columns, {0, 2, 1, 0});
    bench.compare(
        [&](Kernels& on, const auto& at) { routing(on).gather_elements(0, at(picked), at(x), at(rows), at(columns)); },
        {&picked}, 0);
    bench.compare(
        [&](Kernels& on, const auto& at) { routing(on).put_elements(0, at(x), at(picked), at(rows), at(columns)); },
        {&x}, 0);
  }
}

TEST_CASE("kernels/routing: pairs are sorted by expert, in their order") {
  Bench bench;
  for (const std::int64_t n : {1, 255, 256, 600}) {
    Twin x(DType::int64, {n}), values(DType::int64, {n}), order(DType::int64, {n}), tokens(DType::int64, {n});
    std::vector<double> keys;
    for (std::int64_t i = 0; i < n; ++i) keys.push_back(static_cast<double>(i * 7 % 5));
    bench.set(x, keys);
    bench.compare([&](Kernels& on, const auto& at) { routing(on).sort(0, at(values), at(order), at(x)); },
                  {&values, &order}, 0);
    bench.compare([&](Kernels& on, const auto& at) { routing(on).divide(0, at(tokens), at(x), 2); }, {&tokens}, 0);
  }
}

TEST_CASE("kernels/routing: how many pairs each expert has, some have none") {
  Bench bench;
  Twin keys(DType::int32, {7}), counts(DType::int32, {300}), ends(DType::int32, {300});
  bench.set(keys, {0, 0, 3, 3, 3, 4, 299});
  bench.compare([&](Kernels& on, const auto& at) { routing(on).count_groups(0, at(counts), at(ends), at(keys)); },
                {&counts, &ends}, 0);
}

}  // namespace
}  // namespace qlp::test

#include "kernels/bench.h"
#include "tensor/routing_kernels.h"

namespace qlp::test {
namespace {

RoutingKernels& routing(Kernels& kernels) { return dynamic_cast<RoutingKernels&>(kernels); }

TEST_CASE("kernels/grouped_gemm: groups at the edges of tiles, and without rows") {
  Bench bench;
  for (const DType dtype : kFloats)
    for (const std::vector<double>& ends : {std::vector<double>{0, 1, 17, 17, 40}, {16, 16, 16, 39, 40}}) {
      constexpr std::int64_t kRows = 40, kIn = 19, kOut = 33, kGroups = 5;
      Twin a(dtype, {kRows, kIn}), b(dtype, {kGroups, kIn, kOut}), out(dtype, {kRows, kOut}), at_end(DType::int32, {5});
      Twin grad(dtype, {kRows, kOut}), stacks(dtype, {kGroups, kIn, kOut});
      bench.randomize(a), bench.randomize(b), bench.randomize(grad), bench.set(at_end, ends);
      bench.compare(
          [&](Kernels& on, const auto& at) { routing(on).grouped_gemm(0, at(out), at(a), at(b), at(at_end)); }, {&out},
          tolerance_of(dtype));
      bench.compare(
          [&](Kernels& on, const auto& at) { routing(on).grouped_outer(0, at(stacks), at(a), at(grad), at(at_end)); },
          {&stacks}, tolerance_of(dtype));
    }
}

TEST_CASE("kernels/grouped_gemm: matrices that lie the other way round") {
  Bench bench;
  Twin a(DType::bfloat16, {20, 18}), b(DType::bfloat16, {2, 9, 18}, {2, 18, 9}, {162, 1, 18});
  Twin out(DType::bfloat16, {20, 9}), ends(DType::int32, {2});
  bench.randomize(a), bench.randomize(b), bench.set(ends, {3, 20});
  bench.compare([&](Kernels& on, const auto& at) { routing(on).grouped_gemm(0, at(out), at(a), at(b), at(ends)); },
                {&out}, tolerance_of(DType::bfloat16));
}

TEST_CASE("kernels/grouped_gemm: rows in int8, and their products, which are whole numbers") {
  Bench bench;
  for (const std::int64_t width : {1, 64, 300}) {
    Twin x(DType::float16, {5, width}), codes(DType::int8, {5, width}), scales(DType::float32, {5});
    bench.randomize(x);
    bench.compare([&](Kernels& on, const auto& at) { routing(on).quantize_rows_8bit(0, at(codes), at(scales), at(x)); },
                  {&codes, &scales}, 0);
    Twin weight(DType::int8, {width, 7}), out(DType::int32, {5, 7});
    bench.randomize(weight, -127, 127);
    bench.compare([&](Kernels& on, const auto& at) { on.gemm(0, at(out), at(codes), at(weight), 1, 0); }, {&out}, 0);
  }
}

}  // namespace
}  // namespace qlp::test

// What sends tokens to experts, and brings them back.
#include <doctest/doctest.h>

#include "autograd/grouped_mm.h"
#include "autograd/indexing.h"
#include "autograd/pointwise.h"
#include "tensor/cpu_device.h"

namespace qlp {
namespace {

using test::CpuDevice;
using test::gradient_error;

constexpr double kExact = 1e-8;

}  // namespace

TEST_CASE("autograd/routing_gradients: rows picked, weighed and summed") {
  const auto check = [](auto&& function, std::initializer_list<Shape> shapes) {
    CpuDevice cpu;
    std::vector<Tensor> leaves;
    for (const Shape& shape : shapes) leaves.push_back(cpu.random(shape, 0.5, 2));
    CHECK(gradient_error(
              cpu, [&](Context& c) { return function(c, cpu, leaves); }, leaves) < kExact);
  };
  using Leaves = std::vector<Tensor>;
  check([](Context& c, CpuDevice&, const Leaves& x) { return topk(c, x[0], 2).values; }, {{5, 7}});
  check(
      [](Context& c, CpuDevice& cpu, const Leaves& x) {
        return index_rows(c, x[0], cpu.tensor({6}, {2, 0, 2, 3, 3, 2}, DType::int64));
      },
      {{4, 3}});
  check(
      [](Context& c, CpuDevice& cpu, const Leaves& x) {
        return index_elements(c, x[0], cpu.tensor({3}, {3, 0, 2}, DType::int64),
                              cpu.tensor({3}, {1, 0, 1}, DType::int64));
      },
      {{4, 2}});
  check(
      [](Context& c, CpuDevice& cpu, const Leaves& x) {
        return add_rows_in_place(c, clone(c, x[0]), cpu.tensor({3}, {3, 0, 2}, DType::int64), x[1]);
      },
      {{4, 2}, {3, 2}});
  check([](Context& c, CpuDevice&, const Leaves& x) { return max_last(c, x[0]); }, {{5, 7}});
  check(
      [](Context& c, CpuDevice& cpu, const Leaves& x) {
        return scatter_last(c, cpu.tensor({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}),
                            cpu.tensor({2, 2}, {3, 0, 1, 2}, DType::int64), x[0]);
      },
      {{2, 2}});
  check([](Context& c, CpuDevice&, const Leaves& x) { return sum_middle(c, x[0]); }, {{4, 3, 5}});
  check([](Context& c, CpuDevice&, const Leaves& x) { return sum_last(c, x[0]); }, {{4, 3}});
  check([](Context& c, CpuDevice&, const Leaves& x) { return div_in_place(c, clone(c, x[0]), x[1]); },
        {{4, 3}, {4, 1}});
}

TEST_CASE("autograd/routing_gradients: products by groups, one of them empty, and sums of stacks") {
  CpuDevice cpu;
  const Tensor rows = cpu.random({7, 3}), matrices = cpu.random({4, 5, 3});
  const Tensor ends = cpu.tensor({4}, {2, 2, 6, 7}, DType::int32);
  CHECK(gradient_error(cpu, [&](Context& c) { return grouped_mm(c, rows, matrices, ends); }, {rows, matrices}) <
        kExact);
  const Tensor others = cpu.random({7, 3}), turned = cpu.random({4, 3, 5});
  CHECK(gradient_error(cpu, [&](Context& c) { return grouped_mm_turned(c, others, turned, ends); }, {others, turned}) <
        kExact);
  const Tensor stack = cpu.random({2, 4, 3}), left = cpu.random({2, 4, 2}), right = cpu.random({2, 2, 3});
  CHECK(gradient_error(cpu, [&](Context& c) { return add_products(c, stack, left, right, 0.7); }, {left, right}) <
        kExact);
}

TEST_CASE("autograd/routing_gradients: the greatest, an order and its groups") {
  CpuDevice cpu;
  const TopK best = topk(cpu.ctx, cpu.tensor({2, 4}, {1, 3, 3, 2, -1, -5, 0, -2}), 2);
  CHECK(cpu.numbers(best.values) == std::vector<double>{3, 3, 0, -1});
  CHECK(cpu.numbers(best.indices) == std::vector<double>{1, 2, 2, 0});
  const Sorted sorted = sort(cpu.ctx, cpu.tensor({6}, {2, 0, 3, 0, 2, 3}, DType::int64));
  CHECK(cpu.numbers(sorted.values) == std::vector<double>{0, 0, 2, 2, 3, 3});
  CHECK(cpu.numbers(sorted.order) == std::vector<double>{1, 3, 0, 4, 2, 5});
  const Tensor keys = cpu.tensor({6}, {0, 0, 2, 2, 3, 3}, DType::int32);
  const Tensor counts = empty(cpu.ctx, {5}, DType::int32, Op::histc), ends = empty_like(cpu.ctx, counts, Op::cumsum);
  cpu.kernels.count_groups(0, array_of(counts), array_of(ends), array_of(keys));
  CHECK(cpu.numbers(counts) == std::vector<double>{2, 0, 2, 2, 0});
  CHECK(cpu.numbers(ends) == std::vector<double>{2, 2, 4, 6, 6});
}

}  // namespace qlp

// Every operation that autograd records, against differences of its own forward pass.
#include <doctest/doctest.h>

#include "autograd/attention.h"
#include "autograd/checkpoint.h"
#include "autograd/embedding.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "autograd/views.h"
#include "tensor/cpu_device.h"

namespace qlp {
namespace {

using test::CpuDevice;
using test::gradient_error;

constexpr double kExact = 1e-8;
constexpr double kFloatStatistics = 1e-5;  // what is kept in float32 on the way

}  // namespace

TEST_CASE("autograd/gradients: elementwise operations, broadcast") {
  CpuDevice cpu;
  const Tensor a = cpu.random({2, 3, 4}), b = cpu.random({3, 4}, 0.5, 2), row = cpu.random({4}, 0.5, 2);
  CHECK(gradient_error(cpu, [&](Context& c) { return add(c, a, b); }, {a, b}) < kExact);
  CpuDevice second;
  const auto check = [&](auto&& function, std::initializer_list<Shape> shapes, double low, double high) {
    CpuDevice device;
    std::vector<Tensor> leaves;
    for (const Shape& shape : shapes) leaves.push_back(device.random(shape, low, high));
    CHECK(gradient_error(
              device, [&](Context& c) { return function(c, leaves); }, leaves) < kExact);
  };
  using Leaves = std::vector<Tensor>;
  check([](Context& c, const Leaves& x) { return mul(c, x[0], x[1]); }, {{2, 3, 4}, {4}}, -1, 1);
  check([](Context& c, const Leaves& x) { return div(c, x[0], x[1]); }, {{2, 3, 4}, {3, 1}}, 0.5, 2);
  check([](Context& c, const Leaves& x) { return mul(c, x[0], x[0]); }, {{5}}, -1, 1);
  check([](Context& c, const Leaves& x) { return scale(c, x[0], 0.7); }, {{5}}, -1, 1);
  check([](Context& c, const Leaves& x) { return add_scalar(c, x[0], 0.7); }, {{5}}, -1, 1);
  check([](Context& c, const Leaves& x) { return neg(c, x[0]); }, {{5}}, -1, 1);
  check([](Context& c, const Leaves& x) { return silu(c, x[0]); }, {{50}}, -4, 4);
  check([](Context& c, const Leaves& x) { return gelu(c, x[0]); }, {{50}}, -4, 4);
  check([](Context& c, const Leaves& x) { return tanh(c, x[0]); }, {{50}}, -3, 3);
  check([](Context& c, const Leaves& x) { return sigmoid(c, x[0]); }, {{50}}, -3, 3);
  check([](Context& c, const Leaves& x) { return clamp_at_most(c, x[0], 1); }, {{50}}, -3, 3);
  check([](Context& c, const Leaves& x) { return clamp_within(c, x[0], 1); }, {{50}}, -3, 3);
  check([](Context& c, const Leaves& x) { return add_in_place(c, clone(c, x[0]), x[1]); }, {{4, 3}, {3}}, -3, 3);
  check([](Context& c, const Leaves& x) { return square(c, x[0]); }, {{50}}, -3, 3);
  check([](Context& c, const Leaves& x) { return rsqrt(c, x[0]); }, {{50}}, 0.2, 3);
  check([](Context& c, const Leaves& x) { return clone(c, x[0]); }, {{5}}, -1, 1);
  check([](Context& c, const Leaves& x) { return dropout(c, x[0], 0.4); }, {{4, 25}}, -1, 1);
}

TEST_CASE("autograd/gradients: views and what regroups elements") {
  const auto check = [&](auto&& function, std::initializer_list<Shape> shapes) {
    CpuDevice cpu;
    std::vector<Tensor> leaves;
    for (const Shape& shape : shapes) leaves.push_back(cpu.random(shape));
    CHECK(gradient_error(
              cpu, [&](Context& c) { return function(c, leaves); }, leaves) < kExact);
  };
  using Leaves = std::vector<Tensor>;
  check([](Context& c, const Leaves& x) { return reshape(c, transpose(c, x[0], 0, 1), {12}); }, {{3, 4}});
  check([](Context& c, const Leaves& x) { return slice(c, x[0], 1, 1, 2); }, {{3, 4}});
  check([](Context& c, const Leaves& x) { return cat(c, x[0], x[1], -1); }, {{3, 4}, {3, 2}});
  check([](Context& c, const Leaves& x) { return expand(c, x[0], {2, 3, 4}); }, {{1, 3, 1}});
  check(
      [](Context& c, const Leaves& x) {
        const auto parts = split(c, x[0], {1, 3, 2}, -1);
        return mul(c, parts[1], add(c, parts[0], parts[1]));
      },
      {{3, 6}});
  check([](Context& c, const Leaves& x) { return repeat_kv(c, x[0], 3, true); }, {{2, 2, 3, 4}});
  check([](Context& c, const Leaves& x) { return repeat_interleave(c, x[0], 2); }, {{1, 2, 3, 4}});
  check([](Context& c, const Leaves& x) { return contiguous(c, transpose(c, x[0], 0, 2)); }, {{2, 3, 4}});
}

TEST_CASE("autograd/gradients: products of matrices") {
  CpuDevice cpu;
  const Tensor x = cpu.random({2, 3, 5}), w = cpu.random({4, 5}), bias = cpu.random({4});
  CHECK(gradient_error(cpu, [&](Context& c) { return linear(c, x, w); }, {x, w}) < kExact);
  CpuDevice other;
  const Tensor y = other.random({2, 3, 5}), v = other.random({4, 5}), b = other.random({4});
  CHECK(gradient_error(other, [&](Context& c) { return linear(c, y, v, b); }, {y, v, b}) < kExact);
  CpuDevice third;
  const Tensor left = third.random({2, 2, 3, 5}), right = third.random({2, 2, 5, 4});
  CHECK(gradient_error(third, [&](Context& c) { return batched_matmul(c, left, right); }, {left, right}) < kExact);
  CpuDevice fourth;
  const Tensor m = fourth.random({3, 5}), n = fourth.random({5, 2});
  CHECK(gradient_error(fourth, [&](Context& c) { return mm(c, m, n); }, {m, n}) < kExact);
}

TEST_CASE("autograd/gradients: reductions, softmax and losses") {
  CpuDevice cpu;
  const Tensor x = cpu.random({3, 7});
  CHECK(gradient_error(cpu, [&](Context& c) { return mean_last(c, x); }, {x}) < kExact);
  CpuDevice second;
  const Tensor y = second.random({3, 7}, -3, 3);
  CHECK(gradient_error(second, [&](Context& c) { return softmax(c, y, DType::float64); }, {y}) < kExact);
  for (const LossReduction reduction : {LossReduction::sum, LossReduction::mean}) {
    CpuDevice third;
    const Tensor logits = third.random({4, 7}, -3, 3), labels = third.tensor({4}, {3, -100, 0, 6}, DType::int64);
    CHECK(gradient_error(third, [&](Context& c) { return cross_entropy(c, logits, labels, reduction); }, {logits}) <
          kExact);
  }
}

TEST_CASE("autograd/gradients: rows of a table, few of them and so many that they are sorted") {
  for (const std::int64_t count : {6, 4000}) {
    CpuDevice cpu;
    std::vector<double> ids;
    for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<double>(i * i % 5));
    const Tensor index = cpu.tensor({1, count}, ids, DType::int64), table = cpu.random({6, 3});
    CHECK(gradient_error(cpu, [&](Context& c) { return embedding(c, index, table); }, {table}) < kExact);
  }
}

TEST_CASE("autograd/gradients: attention, with grouped heads, a window, a mask, and as a composite") {
  const AttentionBehaviour behaviour{.efficient_groups_heads = true};
  const auto check = [&](std::int64_t kv_heads, auto&& attend) {
    CpuDevice cpu;
    const Tensor q = cpu.random({2, 4, 5, 8}), k = cpu.random({2, kv_heads, 5, 8}), v = cpu.random({2, kv_heads, 5, 8});
    CHECK(gradient_error(
              cpu, [&](Context& c) { return attend(c, q, k, v); }, {q, k, v}, 1e-4) < kFloatStatistics);
  };
  for (const std::int64_t kv_heads : {4, 2}) {
    check(kv_heads, [&](Context& c, const Tensor& q, const Tensor& k, const Tensor& v) {
      return flash_attention(c, q, k, v, behaviour);
    });
    check(kv_heads, [&](Context& c, const Tensor& q, const Tensor& k, const Tensor& v) {
      return flash_attention(c, q, k, v, behaviour, 2, 0.5);
    });
    check(kv_heads, [&](Context& c, const Tensor& q, const Tensor& k, const Tensor& v) {
      return efficient_attention(c, q, k, v, {}, behaviour);
    });
    check(kv_heads,
          [&](Context& c, const Tensor& q, const Tensor& k, const Tensor& v) { return math_attention(c, q, k, v); });
  }
  check(4, [&](Context& c, const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor mask = empty(c, {2, 1, 5, 5}, DType::boolean, Op::input);
    fill_causal_band(c, mask, 3, 1, 0);
    return scaled_dot_product_attention(c, q, k, v, mask, behaviour);
  });
}

TEST_CASE("autograd/gradients: a checkpointed region, with the same dropout when it runs again") {
  for (const bool reentrant : {false, true}) {
    CpuDevice cpu;
    const Tensor x = cpu.random({3, 20}), w = cpu.random({4, 20});
    const Region region = [&w](Context& c, const Tensor& input) {
      return silu(c, linear(c, dropout(c, mul(c, input, input), 0.3), w));
    };
    const auto run = [&](Context& c) {
      const Tensor before = scale(c, x, 1);
      return reentrant ? checkpoint_reentrant(c, region, before) : checkpoint_nonreentrant(c, region, before);
    };
    CHECK(gradient_error(cpu, run, {x, w}) < kExact);
  }
}

}  // namespace qlp

#include <cmath>

#include "kernels/bench.h"

namespace qlp::test {
namespace {

struct Case {
  std::int64_t batch, heads, kv_heads, rows, columns, width;
  AttentionOptions options;
};

/// Forward and backward against the host. `mask` may be null.
void check_attention(Bench& bench, DType dtype, const Case& c, Twin* mask) {
  // As projections give them: [B, S, H, D] in memory.
  const auto laid = [](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return Strides{rows * heads * width, width, heads * width, 1};
  };
  const Shape q_shape{c.batch, c.heads, c.rows, c.width}, k_shape{c.batch, c.kv_heads, c.columns, c.width};
  const Strides q_strides = laid(c.heads, c.rows, c.width), k_strides = laid(c.kv_heads, c.columns, c.width);
  Twin q(dtype, q_shape, q_shape, q_strides), k(dtype, k_shape, k_shape, k_strides),
      v(dtype, k_shape, k_shape, k_strides);
  Twin out(dtype, q_shape), lse(DType::float32, {c.batch, c.heads, c.rows});
  bench.randomize(q, -2, 2), bench.randomize(k, -2, 2), bench.randomize(v);
  AttentionOptions options = c.options;
  options.scale = 1 / std::sqrt(static_cast<double>(c.width));
  const auto masked = [&](const auto& at) { return mask ? at(*mask) : Array{}; };
  INFO(name_of(dtype) << " rows " << c.rows << " columns " << c.columns << " width " << c.width);
  bench.compare(
      [&](Kernels& on, const auto& at) { on.attention(0, at(out), at(lse), at(q), at(k), at(v), masked(at), options); },
      {&out, &lse}, tolerance_of(dtype));
  // Backward from what the host has, on both.
  bench.device().upload(0, out.device.data, out.memory.data(), out.memory.size());
  bench.device().upload(0, lse.device.data, lse.memory.data(), lse.memory.size());
  Twin grad(dtype, q_shape), dq(dtype, q_shape, q_shape, q_strides), dk(dtype, k_shape), dv(dtype, k_shape);
  bench.randomize(grad);
  bench.compare(
      [&](Kernels& on, const auto& at) {
        on.attention_backward(0, at(dq), at(dk), at(dv), at(grad), at(out), at(lse), at(q), at(k), at(v), masked(at),
                              options);
      },
      {&dq, &dk, &dv}, tolerance_of(dtype) * 2);
}

TEST_CASE("kernels/attention: causal, with rows at the edges of tiles") {
  Bench bench;
  for (const std::int64_t rows : {1, 31, 32, 33, 70})
    check_attention(bench, DType::float32, {1, 2, 2, rows, rows, 16, {}}, nullptr);
}

TEST_CASE("kernels/attention: heads as wide as models have them, in 16 bits") {
  Bench bench;
  for (const std::int64_t width : {64, 80, 128, 256}) {
    check_attention(bench, DType::bfloat16, {1, 1, 1, 34, 34, width, {}}, nullptr);
  }
  check_attention(bench, DType::float16, {1, 1, 1, 33, 33, 96, {}}, nullptr);
}

TEST_CASE("kernels/attention: groups of heads share keys and values, in every sample of a batch") {
  Bench bench;
  check_attention(bench, DType::float32, {2, 4, 2, 33, 33, 24, {}}, nullptr);
}

TEST_CASE("kernels/attention: a sliding window, without causality, and more keys than queries") {
  Bench bench;
  check_attention(bench, DType::float32, {1, 1, 1, 70, 70, 16, {.window = 20}}, nullptr);
  check_attention(bench, DType::float32, {1, 1, 1, 40, 40, 16, {.causal = false}}, nullptr);
  check_attention(bench, DType::float32, {1, 1, 1, 10, 45, 16, {}}, nullptr);
  check_attention(bench, DType::float32, {1, 2, 1, 10, 45, 16, {.causal = false, .window = 12}}, nullptr);
}

TEST_CASE("kernels/attention: masks that are added, and masks that say what is seen") {
  Bench bench;
  Twin added(DType::bfloat16, {2, 1, 36, 36});
  bench.randomize(added, -3, 3);
  check_attention(bench, DType::bfloat16, {2, 2, 2, 36, 36, 32, {.causal = false}}, &added);
  std::vector<double> seen(36 * 36);
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = i % 36 < 30 && i / 36 != 7 && i % 5 != 2 ? 1 : 0;
  Twin boolean(DType::boolean, {1, 1, 36, 36});
  bench.set(boolean, seen);  // row 7 sees nothing
  check_attention(bench, DType::float32, {2, 2, 1, 36, 36, 32, {}}, &boolean);
}

TEST_CASE("kernels/attention: heads wider than the kernel is made for are refused") {
  Bench bench;
  Twin q(DType::bfloat16, {1, 1, 4, 264}), lse(DType::float32, {1, 1, 4}), out(DType::bfloat16, {1, 1, 4, 264});
  CHECK_THROWS_AS(bench.device().attention(0, out.device, lse.device, q.device, q.device, q.device, {}, {}),
                  std::runtime_error);
}

}  // namespace
}  // namespace qlp::test

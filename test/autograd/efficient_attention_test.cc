// The events are those of F.scaled_dot_product_attention on the null GPU (sm80 unless said), torch 2.8 unless said.
#include <doctest/doctest.h>

#include "autograd/attention_run.h"

namespace qlp {
namespace {

using namespace test;

AttentionRun run(const AttentionSize& size, DType dtype, const AttentionBehaviour& behaviour = kTorch28,
                 DeviceTraits traits = a100()) {
  DryDevice dry(traits);
  return run_attention(dry, size, dtype, [&](Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
    return efficient_attention(ctx, q, k, v, {}, behaviour);
  });
}

/// The workspace of the backward pass: what it takes last.
std::int64_t workspace(const AttentionSize& size, DType dtype, std::uint32_t compute_capability) {
  const Events events =
      run(size, dtype, kTorch28, {.compute_capability = compute_capability, .sm_count = 108}).backward;
  std::int64_t last = 0;
  for (const auto bytes : events)
    if (bytes > 0) last = bytes;
  return last;
}

}  // namespace

TEST_CASE("autograd/efficient_attention: pads the log-sum-exp to 32 rows") {
  const AttentionRun half = run({2, 8, 8, 500, 64}, DType::bfloat16);
  CHECK(half.forward == Events{1024000, 32768});
  CHECK(half.backward == Events{1024000, 1024000, 1024000, 32000, 2099200, -32000, -2099200});
}

TEST_CASE("autograd/efficient_attention: float32 works out delta outside of the kernel") {
  const AttentionRun single = run({2, 8, 8, 500, 64}, DType::float32);
  CHECK(single.forward == Events{2048000, 32768});
  CHECK(single.backward ==
        Events{2048000, 2048000, 2048000, 2048000, 32000, 32000, -32000, -2048000, 2099200, -32000, -2099200});
}

TEST_CASE("autograd/efficient_attention: heads wider than 128 are summed in float32") {
  CHECK(run({1, 8, 8, 512, 256}, DType::bfloat16).forward == Events{2097152, 16384, 4194304, -4194304});
  CHECK(run({1, 8, 8, 512, 256}, DType::float32).forward == Events{4194304, 16384});
}

TEST_CASE("autograd/efficient_attention: torch 2.14 keeps seed and offset on the device and groups heads") {
  const AttentionRun grouped = run({1, 8, 2, 200, 64}, DType::float32, kTorch214);
  CHECK(grouped.forward == Events{8, 8, 409600, 7168});
  CHECK(grouped.backward == Events{409600, 102400, 102400, 409600, 409600, 409600, 6400, 6400, -6400, -409600, 524800,
                                   -6400, -524800, -409600, -409600});
}

TEST_CASE("autograd/efficient_attention: the workspace of the backward pass follows the tile of its kernel") {
  struct Row {
    DType dtype;
    AttentionSize size;
    std::int64_t large, little;  ///< on sm80, and on sm86 with its 99 KiB of shared memory a block
  };
  for (const Row& row : {
           Row{DType::bfloat16, {1, 8, 8, 64, 64}, 131200, 131200},
           Row{DType::bfloat16, {1, 8, 8, 64, 96}, 524416, 524544},
           Row{DType::bfloat16, {1, 8, 8, 128, 128}, 524416, 1573376},
           Row{DType::bfloat16, {1, 8, 8, 512, 128}, 2097664, 6293504},
           Row{DType::bfloat16, {1, 8, 8, 512, 160}, 11535872, 11535872},
           Row{DType::bfloat16, {4, 8, 8, 512, 256}, 41951232, 41951232},
           Row{DType::float32, {64, 8, 8, 512, 128}, 134283264, 134348800},
           Row{DType::float32, {1, 8, 8, 64, 128}, 524544, 262400},
       }) {
    CAPTURE(row.size.rows);
    CAPTURE(row.size.width);
    CHECK(workspace(row.size, row.dtype, 80) == row.large);
    CHECK(workspace(row.size, row.dtype, 90) == row.large);
    CHECK(workspace(row.size, row.dtype, 86) == row.little);
    CHECK(workspace(row.size, row.dtype, 120) == row.little);
  }
}

}  // namespace qlp

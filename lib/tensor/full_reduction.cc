#include "tensor/full_reduction.h"

#include <algorithm>
#include <bit>

#include "tensor/factories.h"
#include "tensor/multiprocessor.h"

namespace qlp {
namespace {

constexpr std::int64_t kBlockThreads = 512;        // MAX_NUM_THREADS
constexpr std::int64_t kVectorWidth = 4;           // input_vec_size
constexpr std::int64_t kVectorizedFrom = 129;      // inputs
constexpr std::int64_t kMinValuesPerThread = 16;   // after the work is shared
constexpr std::int64_t kMaxValuesPerThread = 256;  // before it is

constexpr std::int64_t div_ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t full_reduction_blocks(std::int64_t inputs, const DeviceTraits& traits) {
  const std::int64_t lanes = inputs >= kVectorizedFrom ? inputs / kVectorWidth : inputs;
  const std::int64_t threads =
      std::min(kBlockThreads, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(lanes))));
  const std::int64_t per_thread = div_ceil(inputs, threads);
  if (per_thread < kMaxValuesPerThread) return 1;
  const std::int64_t resident = traits.sm_count * (threads_per_multiprocessor(traits.compute_capability) / threads);
  const std::int64_t useful = div_ceil(per_thread, kMinValuesPerThread);
  return std::max(std::min(resident, useful), div_ceil(per_thread, kMaxValuesPerThread));
}

void full_reduction_scratch(Context& ctx, std::int64_t inputs, Op op) {
  const std::int64_t blocks = full_reduction_blocks(inputs, ctx.device.traits());
  if (blocks == 1) return;
  const Scoped category(ctx.category, Category::workspace);
  const Tensor partial = empty(ctx, {blocks}, DType::float32, op);
  const Tensor semaphore = empty(ctx, {1}, DType::int32, op);
}

}  // namespace qlp

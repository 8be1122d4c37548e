#include "tensor/reduction.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/inline_vector.h"
#include "base/rounding.h"
#include "tensor/factories.h"
#include "tensor/multiprocessor.h"

namespace qlp {
namespace {

// Reduce.cuh
constexpr std::int64_t kMaxThreads = 512;  // MAX_NUM_THREADS
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kVectorWidth = 4;           // input_vec_size
constexpr std::int64_t kVectorizedFrom = 129;      // inputs of one result
constexpr std::int64_t kMinValuesPerThread = 16;   // once blocks share the work
constexpr std::int64_t kMaxValuesPerThread = 256;  // before they do

std::int64_t last_power_of_two(std::int64_t n) {
  return n < 1 ? 1 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

/// A dimension as TensorIterator sees it; strides in elements, that of the result is 0 where it is reduced.
struct Dimension {
  std::int64_t size, result_stride, stride;
};
using Dimensions = InlineVector<Dimension, Shape::kMaxRank>;

Dimensions dimensions_of(const Shape& shape, const Strides& strides, DimensionMask reduced) {
  Dimensions dims;
  std::int64_t step = 1;
  for (int i = static_cast<int>(shape.rank()); i-- > 0;) {
    const bool kept = !((reduced >> i) & 1U);
    dims.push_back({shape[i], kept ? step : 0, strides[static_cast<std::size_t>(i)]});
    if (kept) step *= shape[i];
  }
  return dims;
}

/// Reduced dimensions first, then by stride: of the result, then of the input (TensorIteratorBase::reorder_dimensions).
int order_of(const Dimension& a, const Dimension& b) {
  if ((a.result_stride == 0) != (b.result_stride == 0)) return b.result_stride == 0 ? 1 : -1;
  for (const auto& [x, y] : {std::pair(a.result_stride, b.result_stride), std::pair(a.stride, b.stride)}) {
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (a.size > b.size) return 1;
  }
  return 0;
}

void reorder(Dimensions& dims) {
  for (std::size_t i = 1; i < dims.size(); ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int order = order_of(dims[j], dims[moving]);
      if (order < 0) break;
      if (order > 0) std::swap(dims[j], dims[moving]), moving = j;
    }
  }
}

/// Neighbours that lie in one run become one (TensorIteratorBase::coalesce_dimensions).
Dimensions coalesce(const Dimensions& dims) {
  Dimensions out;
  for (const Dimension& next : dims) {
    if (out.size() == 0) {
      out.push_back(next);
      continue;
    }
    Dimension& last = out[out.size() - 1];
    const bool joins = last.size == 1 || next.size == 1 ||
                       (last.size * last.result_stride == next.result_stride && last.size * last.stride == next.stride);
    if (!joins) {
      out.push_back(next);
      continue;
    }
    if (last.size == 1) last.result_stride = next.result_stride, last.stride = next.stride;
    last.size *= next.size;
  }
  return out;
}

/// Results that a thread loads at once (get_output_vec_size).
std::int64_t results_per_load(const Dimensions& dims, std::size_t first_kept) {
  std::int64_t width = kVectorWidth;
  const auto fit = [&](std::int64_t n) {
    while (n % width != 0) width /= 2;
  };
  fit(dims[first_kept].size);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != first_kept) fit(dims[i].stride);
  return width;
}

void take(Context& ctx, const ReductionScratch& bytes, Op op) {
  if (!bytes.buffer_bytes || ctx.place != Place::device) return;
  const Scoped category(ctx.category, Category::workspace);
  const Storage buffer(ctx.device, bytes.buffer_bytes, ctx.stream, ctx.label(op));
  const Storage semaphores(ctx.device, bytes.semaphore_bytes, ctx.stream, ctx.label(op));
}

}  // namespace

ReductionScratch reduction_scratch_bytes(const Shape& shape, const Strides& strides, DimensionMask reduced,
                                         const DeviceTraits& traits, std::uint64_t partial_bytes) {
  Dimensions dims = dimensions_of(shape, strides, reduced);
  reorder(dims);
  dims = coalesce(dims);
  std::size_t first_kept = 0;
  while (first_kept < dims.size() && dims[first_kept].result_stride == 0) ++first_kept;
  if (first_kept == 0) return {};
  std::int64_t results = 1;
  for (std::size_t i = first_kept; i < dims.size(); ++i) results *= dims[i].size;
  const std::int64_t inputs = shape.numel() / results;

  // A block's first dimension runs along whatever lies side by side in memory.
  const bool along_inputs = first_kept == dims.size() || dims[0].stride < dims[first_kept].stride;
  std::int64_t across = along_inputs ? inputs : results, down = along_inputs ? results : inputs;
  std::int64_t width = 1;
  if (along_inputs && dims[0].stride == 1 && across >= kVectorizedFrom && dims.size() == 1) {
    across /= kVectorWidth;
  } else if (!along_inputs && dims[first_kept].stride == 1) {
    width = results_per_load(dims, first_kept);
    across /= width;
  }
  const std::int64_t most = kMaxThreads / width;
  const std::int64_t across_most = std::min(last_power_of_two(across), most);
  const std::int64_t block_height =
      std::min(std::min(last_power_of_two(down), most), most / std::min(across_most, kWarp));
  const std::int64_t block_width = std::min(across_most, most / block_height);

  std::int64_t input_step = along_inputs ? block_width : 1, result_step = along_inputs ? 1 : block_width;
  const auto values_per_thread = [&] { return ceil_div(inputs, input_step); };
  if (values_per_thread() < std::min(block_height * 16, kMaxValuesPerThread)) return {};
  input_step *= block_height;
  const std::int64_t resident =
      traits.sm_count * (threads_per_multiprocessor(traits.compute_capability) / (block_width * block_height));
  const std::int64_t grid = ceil_div(results / width, result_step);
  if (values_per_thread() < kMaxValuesPerThread || grid > resident) return {};
  const std::int64_t useful = ceil_div(values_per_thread(), kMinValuesPerThread);
  const std::int64_t needed = ceil_div(values_per_thread(), kMaxValuesPerThread);
  const std::int64_t sharing = std::max(std::min(ceil_div(resident, grid), useful), needed);
  if (sharing <= 1) return {};
  const std::int64_t partials = results * sharing * (along_inputs ? 1 : block_width * width);
  return {static_cast<std::uint64_t>(partials) * partial_bytes, static_cast<std::uint64_t>(grid) * sizeof(int)};
}

void reduction_scratch(Context& ctx, const Tensor& input, DimensionMask reduced, Op op) {
  take(ctx, reduction_scratch_bytes(input.shape(), input.strides(), reduced, ctx.device.traits()), op);
}

void full_reduction_scratch(Context& ctx, std::int64_t inputs, Op op, std::uint64_t partial_bytes) {
  take(ctx, reduction_scratch_bytes({inputs}, contiguous_strides({inputs}), 1, ctx.device.traits(), partial_bytes), op);
}

}  // namespace qlp

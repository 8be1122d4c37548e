#include "grouped_gemm.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

constexpr int kTile = 16;

std::int64_t tiles_of(std::int64_t size) { return (size + kTile - 1) / kTile; }

__device__ std::int64_t start_of(const std::int32_t* ends, std::int64_t group) {
  return group == 0 ? 0 : ends[group - 1];
}

/// Element [row, column] of a matrix, zero from `rows` or `columns` on.
__device__ float element(const View& view, std::int64_t row, std::int64_t column, std::int64_t rows,
                         std::int64_t columns) {
  if (row >= rows || column >= columns) return 0.0F;
  return load<float>(view.data, view.type, row * view.stride[0] + column * view.stride[1]);
}

/// The same of matrix `index` of a stack.
__device__ float stack_element(const View& stack, std::int64_t index, std::int64_t row, std::int64_t column) {
  if (row >= stack.size[1] || column >= stack.size[2]) return 0.0F;
  return load<float>(stack.data, stack.type,
                     index * stack.stride[0] + row * stack.stride[1] + column * stack.stride[2]);
}

/// A block for each tile of rows of one group and of columns. There are at most so many tiles of rows as all rows would
/// make, and one more for each group: those past the last have nothing to do.
__global__ void gemm_kernel(View out, View a, View b, const std::int32_t* ends, std::int64_t across) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  std::int64_t group = 0, tile = blockIdx.x / across;
  for (; group < b.size[0]; ++group) {
    const std::int64_t tiles = (ends[group] - start_of(ends, group) + kTile - 1) / kTile;
    if (tile < tiles) break;
    tile -= tiles;
  }
  if (group == b.size[0]) return;
  const int y = static_cast<int>(threadIdx.x) / kTile, x = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t row = start_of(ends, group) + tile * kTile + y, column = blockIdx.x % across * kTile + x;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < a.size[1]; k += kTile) {
    tile_a[y][x] = element(a, row, k + x, ends[group], a.size[1]);
    tile_b[y][x] = stack_element(b, group, k + y, column);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row >= ends[group] || column >= out.size[1]) return;
  store(out.data, out.type, row * out.stride[0] + column * out.stride[1], sum);
}

/// A block for each tile of each group's result.
__global__ void outer_kernel(View out, View a, View b, const std::int32_t* ends, std::int64_t down,
                             std::int64_t across) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  const std::int64_t block = blockIdx.x, group = block / across / down;
  const int y = static_cast<int>(threadIdx.x) / kTile, x = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t top = block / across % down * kTile, left = block % across * kTile;
  float sum = 0.0F;
  for (std::int64_t s = start_of(ends, group); s < ends[group]; s += kTile) {
    tile_a[y][x] = element(a, s + y, top + x, ends[group], a.size[1]);
    tile_b[y][x] = element(b, s + y, left + x, ends[group], b.size[1]);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[i][y] * tile_b[i][x];
    __syncthreads();
  }
  if (top + y >= out.size[1] || left + x >= out.size[2]) return;
  store(out.data, out.type, group * out.stride[0] + (top + y) * out.stride[1] + (left + x) * out.stride[2], sum);
}

}  // namespace

cudaError_t grouped_gemm(const View& out, const View& a, const View& b, const std::int32_t* ends, cudaStream_t stream) {
  const std::int64_t across = tiles_of(out.size[1]);
  return launch(gemm_kernel, out.size[0] ? (tiles_of(out.size[0]) + b.size[0]) * across : 0, kTile * kTile, stream, out,
                a, b, ends, across);
}

cudaError_t grouped_outer(const View& out, const View& a, const View& b, const std::int32_t* ends,
                          cudaStream_t stream) {
  const std::int64_t down = tiles_of(out.size[1]), across = tiles_of(out.size[2]);
  return launch(outer_kernel, out.size[0] * down * across, kTile * kTile, stream, out, a, b, ends, down, across);
}

}  // namespace qlp::kernels

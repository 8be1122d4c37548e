#include "gemm_4bit.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

constexpr int kTile = 16;
constexpr std::int64_t kBlock = 64, kNestedBlock = 256;  // of the formats that bitsandbytes' fused product knows

__device__ float absmax_of(const FourBitWeight& weight, std::int64_t block) {
  if (weight.absmax_codes == nullptr) return weight.absmax[block];
  return *weight.offset + weight.nested_code[weight.absmax_codes[block]] * weight.nested_absmax[block / kNestedBlock];
}

/// Zero outside.
__device__ float element(const FourBitWeight& weight, std::int64_t row, std::int64_t column) {
  if (row >= weight.rows || column >= weight.columns) return 0.0F;
  const std::int64_t i = row * weight.columns + column;
  const unsigned both = weight.packed[i / 2];
  return weight.code[i % 2 == 0 ? both >> 4U : both & 15U] * absmax_of(weight, i / kBlock);
}

/// A block for each tile of the result, a thread for each of its elements.
__global__ void gemm_4bit_kernel(View out, View x_view, FourBitWeight weight) {
  __shared__ float tile_x[kTile][kTile], tile_w[kTile][kTile + 1];
  const std::int64_t across = (weight.rows + kTile - 1) / kTile;
  const int y = static_cast<int>(threadIdx.x) / kTile, x = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t row = blockIdx.x / across * kTile + y, first = blockIdx.x % across * kTile;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < weight.columns; k += kTile) {
    tile_x[y][x] = row < x_view.size[0] && k + x < weight.columns ? row_of(x_view, row)[k + x] : 0.0F;
    tile_w[y][x] = element(weight, first + y, k + x);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_x[y][i] * tile_w[x][i];
    __syncthreads();
  }
  if (row < out.size[0] && first + x < weight.rows) row_of(out, row).set(first + x, sum);
}

}  // namespace

cudaError_t gemm_4bit(const View& out, const View& x, const FourBitWeight& weight, cudaStream_t stream) {
  const std::int64_t across = (weight.rows + kTile - 1) / kTile, down = (x.size[0] + kTile - 1) / kTile;
  return launch(gemm_4bit_kernel, across * down, kTile * kTile, stream, out, x, weight);
}

}  // namespace qlp::kernels

#include "gemm.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

constexpr int kTile = 16;

/// Element [row, column] of matrix `batch`; zero outside.
template <class Number>
__device__ Number element(const View& view, std::int64_t batch, std::int64_t row, std::int64_t column) {
  if (row >= view.size[1] || column >= view.size[2]) return Number{};
  return load<Number>(view.data, view.type, batch * view.stride[0] + row * view.stride[1] + column * view.stride[2]);
}

/// A block for each tile of the result, a thread for each of its elements; operands pass through shared memory.
template <class Number>
__global__ void gemm_kernel(View out, View a, View b, Number alpha, Number beta) {
  __shared__ Number tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  const std::int64_t across = (out.size[2] + kTile - 1) / kTile, down = (out.size[1] + kTile - 1) / kTile;
  const std::int64_t block = blockIdx.x, batch = block / across / down;
  const int y = static_cast<int>(threadIdx.x) / kTile, x = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t row = block / across % down * kTile + y, column = block % across * kTile + x;
  Number sum{};
  for (std::int64_t k = 0; k < a.size[2]; k += kTile) {
    tile_a[y][x] = element<Number>(a, batch, row, k + x);
    tile_b[y][x] = element<Number>(b, batch, k + y, column);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row >= out.size[1] || column >= out.size[2]) return;
  const std::int64_t at = batch * out.stride[0] + row * out.stride[1] + column * out.stride[2];
  const Number before = beta == Number{} ? Number{} : beta * load<Number>(out.data, out.type, at);
  store(out.data, out.type, at, alpha * sum + before);
}

}  // namespace

cudaError_t gemm(const View& out, const View& a, const View& b, double alpha, double beta, cudaStream_t stream) {
  const std::int64_t across = (out.size[2] + kTile - 1) / kTile, down = (out.size[1] + kTile - 1) / kTile;
  const std::int64_t blocks = out.size[0] * down * across;
  if (a.type == Type::int8)
    return launch(gemm_kernel<std::int32_t>, blocks, kTile * kTile, stream, out, a, b, static_cast<std::int32_t>(alpha),
                  static_cast<std::int32_t>(beta));
  return launch(gemm_kernel<float>, blocks, kTile * kTile, stream, out, a, b, static_cast<float>(alpha),
                static_cast<float>(beta));
}

}  // namespace qlp::kernels

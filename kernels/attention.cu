#include "attention.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

// A block works on one tile of rows against all tiles of columns that they meet: 8 warps with 4 rows each, a lane for
// each of 32 columns. Forward and for dq the rows are queries and the columns keys; for dk and dv the other way round.
// Operands pass through shared memory in chunks of 64 numbers, so that wide heads need no more of it than narrow ones.
constexpr int kTile = 32;
constexpr int kChunk = 64;
constexpr int kTileThreads = 256;
constexpr int kRowsOfWarp = kTile * static_cast<int>(kWarp) / kTileThreads;

/// One head of a [batch, heads, rows, width] tensor.
struct Head {
  void* data;
  Type type;
  std::int64_t base, row_stride, column_stride, rows;
  int width;

  __device__ float at(std::int64_t row, int column) const {
    return row < rows && column < width ? load<float>(data, type, base + row * row_stride + column * column_stride)
                                        : 0.0F;
  }
  __device__ void set(std::int64_t row, int column, float value) const {
    if (row < rows && column < width) store(data, type, base + row * row_stride + column * column_stride, value);
  }
};

__device__ Head head_of(const View& view, std::int64_t batch, std::int64_t head) {
  return {view.data,
          view.type,
          batch * view.stride[0] + head * view.stride[1],
          view.stride[2],
          view.stride[3],
          view.size[2],
          static_cast<int>(view.size[3])};
}

__device__ unsigned lane() { return threadIdx.x % kWarp; }
/// Of the rows of a tile, the first of this warp.
__device__ int first_row() { return static_cast<int>(threadIdx.x / kWarp) * kRowsOfWarp; }

/// Numbers [chunk, chunk + kChunk) of the rows of a tile, into shared memory; between two barriers.
__device__ void stage(float (&to)[kTile][kChunk + 1], const Head& from, std::int64_t tile, int chunk) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kChunk; i += kTileThreads)
    to[i / kChunk][i % kChunk] = from.at(tile + i / kChunk, chunk + i % kChunk);
}

/// The products of this warp's rows with the column of this lane.
__device__ void products(float (&result)[kRowsOfWarp], const Head& rows, std::int64_t row_tile, const Head& columns,
                         std::int64_t column_tile) {
  __shared__ float a[kTile][kChunk + 1], b[kTile][kChunk + 1];
  for (int r = 0; r < kRowsOfWarp; ++r) result[r] = 0.0F;
  for (int chunk = 0; chunk < rows.width; chunk += kChunk) {
    __syncthreads();
    stage(a, rows, row_tile, chunk);
    stage(b, columns, column_tile, chunk);
    __syncthreads();
    for (int i = 0; i < kChunk; ++i)
      for (int r = 0; r < kRowsOfWarp; ++r) result[r] += a[first_row() + r][i] * b[lane()][i];
  }
}

/// sum(out * its gradient) of each row of a tile of queries, known to all threads past the next barrier.
__device__ void row_products(float (&result)[kTile], const Head& out, const Head& grad, std::int64_t tile) {
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t row = tile + first_row() + r;
    float sum = 0.0F;
    for (int i = static_cast<int>(lane()); i < out.width; i += static_cast<int>(kWarp))
      sum += out.at(row, i) * grad.at(row, i);
    sum = join_warp(sum, Sum());
    if (lane() == 0) result[first_row() + r] = sum;
  }
}

/// What a warp gathers for its rows: number chunk * kChunk + lane, and the one kWarp further, of each.
template <int kChunks>
struct Rows {
  float values[kRowsOfWarp][kChunks][kChunk / kWarp] = {};

  /// Adds the rows of a tile, each weighted by what its lane holds.
  __device__ void add(const float (&weights)[kRowsOfWarp], const Head& from, std::int64_t tile) {
    __shared__ float b[kTile][kChunk + 1];
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      __syncthreads();
      stage(b, from, tile, chunk * kChunk);
      __syncthreads();
      for (int row = 0; row < kTile; ++row)
        for (int r = 0; r < kRowsOfWarp; ++r) {
          const float weight = __shfl_sync(kAllLanes, weights[r], row);
          for (int part = 0; part < kChunk / static_cast<int>(kWarp); ++part)
            values[r][chunk][part] += weight * b[row][part * static_cast<int>(kWarp) + static_cast<int>(lane())];
        }
    }
  }
  __device__ void scale(int r, float factor) {
    for (auto& chunk : values[r])
      for (float& value : chunk) value *= factor;
  }
  /// Writes the rows times `factor`.
  __device__ void write(const Head& to, std::int64_t tile, const float (&factor)[kRowsOfWarp]) const {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
      for (int r = 0; r < kRowsOfWarp; ++r)
        for (int part = 0; part < kChunk / static_cast<int>(kWarp); ++part)
          to.set(tile + first_row() + r, chunk * kChunk + part * static_cast<int>(kWarp) + static_cast<int>(lane()),
                 values[r][chunk][part] * factor[r]);
  }
};

/// Which pairs of a query and a key count.
struct Pairs {
  std::int64_t queries, keys, window;
  bool causal;

  __device__ std::int64_t last_key(std::int64_t query) const { return causal ? query + keys - queries : keys - 1; }
  __device__ std::int64_t first_key(std::int64_t query) const {
    const std::int64_t first = window > 0 ? query + keys - queries - window + 1 : 0;
    return first > 0 ? first : 0;
  }
  __device__ bool meet(std::int64_t query, std::int64_t key) const {
    return query < queries && key < keys && key <= last_key(query) && key >= first_key(query);
  }
  /// Whether any of two tiles do.
  __device__ bool tiles_meet(std::int64_t query_tile, std::int64_t key_tile) const {
    const std::int64_t last = query_tile + kTile <= queries ? query_tile + kTile - 1 : queries - 1;
    return key_tile <= last_key(last) && key_tile + kTile > first_key(query_tile);
  }
};

__device__ Pairs pairs_of(const Attention& of) { return {of.q.size[2], of.k.size[2], of.window, of.causal}; }

constexpr float kNever = -INFINITY;

/// The scaled and masked score of a product.
__device__ float score(const Attention& of, const Pairs& pairs, std::int64_t batch, std::int64_t head,
                       std::int64_t query, std::int64_t key, float product) {
  if (!pairs.meet(query, key)) return kNever;
  const float result = product * of.scale;
  if (of.mask.data == nullptr) return result;
  const float masked = load<float>(
      of.mask.data, of.mask.type,
      batch * of.mask.stride[0] + head * of.mask.stride[1] + query * of.mask.stride[2] + key * of.mask.stride[3]);
  if (of.mask.type == Type::boolean) return masked != 0.0F ? result : kNever;
  return result + masked;
}

__device__ std::int64_t place_of_lse(const View& lse, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return batch * lse.stride[0] + head * lse.stride[1] + row * lse.stride[2];
}
/// exp(score - lse): what a pair weighs.
__device__ float weight(const Attention& of, std::int64_t batch, std::int64_t head, std::int64_t query, float score) {
  if (score == kNever) return 0.0F;
  return expf(score - static_cast<const float*>(of.lse.data)[place_of_lse(of.lse, batch, head, query)]);
}

/// What a block works on.
struct Place {
  std::int64_t batch, head, tile;
};
__device__ Place place_of_block(std::int64_t heads, std::int64_t rows) {
  const std::int64_t tiles = (rows + kTile - 1) / kTile, block = blockIdx.x;
  return {block / tiles / heads, block / tiles % heads, block % tiles * kTile};
}

template <int kChunks>
__global__ void __launch_bounds__(kTileThreads) forward(Attention of) {
  const auto [batch, head, query_tile] = place_of_block(of.q.size[1], of.q.size[2]);
  const std::int64_t kv_head = head / (of.q.size[1] / of.k.size[1]);
  const Head q = head_of(of.q, batch, head), k = head_of(of.k, batch, kv_head), v = head_of(of.v, batch, kv_head);
  const Pairs pairs = pairs_of(of);
  Rows<kChunks> sums;
  float most[kRowsOfWarp], total[kRowsOfWarp], weights[kRowsOfWarp];
  for (int r = 0; r < kRowsOfWarp; ++r) most[r] = kNever, total[r] = 0.0F;
  for (std::int64_t key_tile = 0; key_tile < pairs.keys; key_tile += kTile) {
    if (!pairs.tiles_meet(query_tile, key_tile)) continue;
    products(weights, q, query_tile, k, key_tile);
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const float s = score(of, pairs, batch, head, query_tile + first_row() + r, key_tile + lane(), weights[r]);
      const float now_most = fmaxf(most[r], join_warp(s, Max()));
      const float base = now_most == kNever ? 0.0F : now_most;  // no key so far
      weights[r] = expf(s - base);
      const float shrink = expf(most[r] - base);
      total[r] = total[r] * shrink + join_warp(weights[r], Sum());
      sums.scale(r, shrink);
      most[r] = now_most;
    }
    sums.add(weights, v, key_tile);
  }
  float factor[kRowsOfWarp];
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t query = query_tile + first_row() + r;
    factor[r] = total[r] > 0.0F ? 1.0F / total[r] : 0.0F;
    if (lane() == 0 && query < pairs.queries && of.lse.data != nullptr)
      static_cast<float*>(of.lse.data)[place_of_lse(of.lse, batch, head, query)] = most[r] + logf(total[r]);
  }
  sums.write(head_of(of.out, batch, head), query_tile, factor);
}

template <int kChunks>
__global__ void __launch_bounds__(kTileThreads) backward_queries(Attention of, AttentionGradients gradients) {
  const auto [batch, head, query_tile] = place_of_block(of.q.size[1], of.q.size[2]);
  const std::int64_t kv_head = head / (of.q.size[1] / of.k.size[1]);
  const Head q = head_of(of.q, batch, head), k = head_of(of.k, batch, kv_head), v = head_of(of.v, batch, kv_head);
  const Head grad = head_of(gradients.out, batch, head);
  const Pairs pairs = pairs_of(of);
  __shared__ float delta[kTile];
  row_products(delta, head_of(of.out, batch, head), grad, query_tile);
  Rows<kChunks> dq;
  float s[kRowsOfWarp], ds[kRowsOfWarp], factor[kRowsOfWarp];
  for (std::int64_t key_tile = 0; key_tile < pairs.keys; key_tile += kTile) {
    if (!pairs.tiles_meet(query_tile, key_tile)) continue;
    products(s, q, query_tile, k, key_tile);
    products(ds, grad, query_tile, v, key_tile);
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const std::int64_t query = query_tile + first_row() + r;
      s[r] = score(of, pairs, batch, head, query, key_tile + lane(), s[r]);
      ds[r] = weight(of, batch, head, query, s[r]) * (ds[r] - delta[first_row() + r]);
    }
    dq.add(ds, k, key_tile);
  }
  for (float& f : factor) f = of.scale;
  dq.write(head_of(gradients.q, batch, head), query_tile, factor);
}

template <int kChunks>
__global__ void __launch_bounds__(kTileThreads) backward_keys(Attention of, AttentionGradients gradients) {
  const auto [batch, kv_head, key_tile] = place_of_block(of.k.size[1], of.k.size[2]);
  const std::int64_t group = of.q.size[1] / of.k.size[1];
  const Head k = head_of(of.k, batch, kv_head), v = head_of(of.v, batch, kv_head);
  const Pairs pairs = pairs_of(of);
  Rows<kChunks> dk, dv;
  __shared__ float delta[kTile];
  float p[kRowsOfWarp], ds[kRowsOfWarp], one[kRowsOfWarp], factor[kRowsOfWarp];
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const Head q = head_of(of.q, batch, head), grad = head_of(gradients.out, batch, head);
    for (std::int64_t query_tile = 0; query_tile < pairs.queries; query_tile += kTile) {
      if (!pairs.tiles_meet(query_tile, key_tile)) continue;
      products(p, k, key_tile, q, query_tile);
      row_products(delta, head_of(of.out, batch, head), grad, query_tile);
      products(ds, v, key_tile, grad, query_tile);
      const std::int64_t query = query_tile + lane();
      for (int r = 0; r < kRowsOfWarp; ++r) {
        p[r] = score(of, pairs, batch, head, query, key_tile + first_row() + r, p[r]);
        p[r] = weight(of, batch, head, query, p[r]);
        ds[r] = p[r] * (ds[r] - delta[lane()]);
      }
      dv.add(p, grad, query_tile);
      dk.add(ds, q, query_tile);
    }
  }
  for (int r = 0; r < kRowsOfWarp; ++r) one[r] = 1.0F, factor[r] = of.scale;
  dk.write(head_of(gradients.k, batch, kv_head), key_tile, factor);
  dv.write(head_of(gradients.v, batch, kv_head), key_tile, one);
}

std::int64_t tiles(const View& view) { return view.size[0] * view.size[1] * ((view.size[2] + kTile - 1) / kTile); }

template <int kChunks>
cudaError_t backward(const Attention& of, const AttentionGradients& gradients, cudaStream_t stream) {
  const cudaError_t status = launch(backward_queries<kChunks>, tiles(of.q), kTileThreads, stream, of, gradients);
  if (status != cudaSuccess) return status;
  return launch(backward_keys<kChunks>, tiles(of.k), kTileThreads, stream, of, gradients);
}

}  // namespace

cudaError_t attention(const Attention& of, cudaStream_t stream) {
  if (of.q.size[3] <= kChunk) return launch(forward<1>, tiles(of.q), kTileThreads, stream, of);
  if (of.q.size[3] <= std::int64_t{2} * kChunk) return launch(forward<2>, tiles(of.q), kTileThreads, stream, of);
  if (of.q.size[3] <= kMaxHeadWidth) return launch(forward<4>, tiles(of.q), kTileThreads, stream, of);
  return cudaErrorInvalidValue;
}

cudaError_t attention_backward(const Attention& of, const AttentionGradients& gradients, cudaStream_t stream) {
  if (of.q.size[3] <= kChunk) return backward<1>(of, gradients, stream);
  if (of.q.size[3] <= std::int64_t{2} * kChunk) return backward<2>(of, gradients, stream);
  if (of.q.size[3] <= kMaxHeadWidth) return backward<4>(of, gradients, stream);
  return cudaErrorInvalidValue;
}

}  // namespace qlp::kernels

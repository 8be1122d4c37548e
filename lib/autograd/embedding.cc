#include "autograd/embedding.h"

#include <algorithm>
#include <bit>

#include "autograd/record.h"
#include "tensor/cub_scratch.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kSortedFrom = 3073;   // Embedding.cu, embedding_dense_backward_cuda
constexpr std::int64_t kRowsPerThread = 10;  // EmbeddingBackwardKernel.cu, NROWS_PER_THREAD

Tensor int64s(Context& ctx, std::int64_t count) { return empty(ctx, {count}, DType::int64, Op::embedding_backward); }

/// The gradient of a table [V, H]: few indices go straight into it. More are sorted, and the rows of each are summed in
/// parts, in float32 (ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu, torch 2.4 to 2.14).
Tensor embedding_dense_backward(Context& ctx, std::int64_t count, const Shape& table, DType dtype) {
  if (count < kSortedFrom) return empty(ctx, table, dtype, Op::embedding_backward);
  const DeviceTraits& traits = ctx.device.traits();
  const auto rows = static_cast<std::uint64_t>(table[0]);
  const Tensor sorted = int64s(ctx, count), order = int64s(ctx, count);
  {
    const Tensor range = int64s(ctx, count);
    const int bits = traits.cuda_toolkit >= 130 ? static_cast<int>(std::bit_width(rows)) : 64;  // all, before CUDA 13
    scratch(ctx, sort_pairs_bytes(count, bits, traits), Op::sort);
  }
  Tensor result = empty(ctx, table, dtype, Op::embedding_backward);
  const std::int64_t segments = std::min(count, table[0]);
  const Tensor segment_starts = int64s(ctx, count), segment_count = int64s(ctx, 1);
  {
    const Tensor unused = int64s(ctx, count);
    scratch(ctx, unique_by_key_bytes(count, traits), Op::embedding_backward);
  }
  const Tensor parts = int64s(ctx, segments), part_starts = int64s(ctx, segments);
  scratch(ctx, scan_bytes(segments, DType::int64, traits), Op::embedding_backward);
  const std::int64_t most_parts = count / kRowsPerThread + segments;
  const Tensor part_count = int64s(ctx, 1), offsets = int64s(ctx, most_parts);
  const Tensor sums = empty(ctx, {most_parts, table[1]}, DType::float32, Op::embedding_backward);
  return result;
}

struct EmbeddingBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  Shape table;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Grads out;
    out.push_back(embedding_dense_backward(ctx, at.numel(), table, grads[0].dtype()));
    return out;
  }
  void release() override { indices.release(); }
};

}  // namespace

Tensor embedding(Context& ctx, const Tensor& indices, const Tensor& weight) {
  const auto node = record<EmbeddingBackward>(ctx, weight);
  if (node) node->table = weight.shape(), node->indices.save(ctx, indices);
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  Tensor out = empty(ctx, shape, weight.dtype(), Op::embedding);
  set_history(out, node);
  return out;
}

}  // namespace qlp

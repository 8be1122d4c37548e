#include "autograd/embedding.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "autograd/record.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/cub_scratch.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kSortedFrom = 3073;   // Embedding.cu, embedding_dense_backward_cuda
constexpr std::int64_t kRowsPerThread = 10;  // EmbeddingBackwardKernel.cu, NROWS_PER_THREAD

/// The gradient of a table [V, H]: few indices go straight into it. More are sorted, and the rows of each are summed in
/// parts, in float32 (ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu, torch 2.4 to 2.14).
Tensor embedding_dense_backward(Context& ctx, const Tensor& grad, const Tensor& indices, const Shape& table) {
  const std::int64_t count = indices.numel();
  const DType dtype = grad.dtype();
  if (count < kSortedFrom) {
    Tensor result = empty(ctx, table, dtype, Op::embedding_backward);
    scatter_rows(ctx, result, grad, indices);
    return result;
  }
  const DeviceTraits& traits = ctx.device.traits();
  const auto rows = static_cast<std::uint64_t>(table[0]);
  const auto positions = [&](std::int64_t n) { return int64s(ctx, {n}, Op::embedding_backward); };
  const Tensor sorted = positions(count), order = positions(count);
  {
    const Tensor range = positions(count);
    const int bits = traits.cuda_toolkit >= 130 ? static_cast<int>(std::bit_width(rows)) : 64;  // all, before CUDA 13
    scratch(ctx, sort_pairs_bytes(count, bits, traits), Op::sort);
  }
  Tensor result = empty(ctx, table, dtype, Op::embedding_backward);
  const std::int64_t segments = std::min(count, table[0]);
  const Tensor segment_starts = positions(count), segment_count = positions(1);
  {
    const Tensor unused = positions(count);
    scratch(ctx, unique_by_key_bytes(count, traits), Op::embedding_backward);
  }
  const Tensor parts = positions(segments), part_starts = positions(segments);
  scratch(ctx, scan_bytes(segments, DType::int64, traits), Op::embedding_backward);
  const std::int64_t most_parts = count / kRowsPerThread + segments;
  const Tensor part_count = positions(1), offsets = positions(most_parts);
  const Tensor sums = empty(ctx, {most_parts, table[1]}, DType::float32, Op::embedding_backward);
  scatter_rows(ctx, result, grad, indices);
  return result;
}

struct EmbeddingBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  Shape table;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Grads out;
    out.push_back(embedding_dense_backward(ctx, grads[0], at, table));
    return out;
  }
  void release() override { indices.release(); }
};

/// DTensor's: torch/distributed/tensor/_ops/_embedding_ops.py; torch 2.14. The gradient is that of the whole table, and
/// is cut where it meets another tensor.
struct VocabParallelBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  bool tied = false;
  std::int64_t first = 0;  ///< row of the rank
  Tensor full;  ///< outlives the cut, which is added to another gradient of a tied table before this one goes
  Shape part, whole;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Tensor gradient = embedding_dense_backward(ctx, grads[0], at, whole);
    Grads out;
    out.push_back(gradient.narrow(0, first, part[0]));
    if (tied) {
      const Tensor own = empty(ctx, part, grads[0].dtype(), Op::contiguous);
      copy_into(ctx, own, out[0]);
      out[0] = own, full = std::move(gradient);
    }
    return out;
  }
  void release() override { indices.release(); }
};

/// _MaskPartial: ids outside of the rank's rows are found, the rest is shifted to its first row.
Tensor mask_ids(Context& ctx, const Tensor& indices, std::int64_t first, std::int64_t rows, Tensor& outside) {
  const auto boolean = [&] { return empty_like(ctx, indices, DType::boolean, Op::ne); };
  {
    const Tensor below = boolean(), above = boolean();
    outside = boolean();
  }
  const Tensor shifted = empty_like(ctx, indices, Op::sub);
  Tensor local = empty_like(ctx, shifted, Op::clone);
  compute(ctx, Unary::add, shifted, indices, -static_cast<double>(first));
  compute(ctx, Unary::at_least, local, shifted, 0);
  compute(ctx, Unary::at_most, local, local, static_cast<double>(rows - 1));
  compute(ctx, Binary::equal, outside, local, shifted);
  compute(ctx, Unary::select, outside, outside, 0, 1);
  return local;
}

}  // namespace

Tensor vocab_parallel_embedding(Context& ctx, const Tensor& indices, const Tensor& weight, const RankGroup& group,
                                bool tied) {
  const std::int64_t first = own_place(ctx, group) * weight.size(0);
  const auto node = record<VocabParallelBackward>(ctx, weight);
  if (node) {
    node->tied = tied, node->first = first;
    node->part = weight.shape(), node->whole = weight.shape().with(0, weight.size(0) * group.size);
    node->indices.save(ctx, indices);
    if (!tied && is_leaf(weight)) autograd_data(weight).whole_grad = node->whole;
  }
  Shape shape = indices.shape(), column = indices.shape();
  shape.push_back(weight.size(1)), column.push_back(1);
  Tensor out;
  {
    Tensor outside;
    Tensor local = mask_ids(ctx, indices, first, weight.size(0), outside);
    const Tensor part = empty(ctx, shape, weight.dtype(), Op::embedding);
    gather_rows(ctx, part, weight, local);
    compute(ctx, Binary::masked, part, part, outside.view(column));
    local.reset(), outside.reset();
    out = empty_like(ctx, part, Op::all_reduce);
    copy_elements(ctx, out, part);
    all_reduce(ctx, group, out, ReduceOp::sum);
  }
  set_history(out, node);
  return out;
}

Tensor embedding(Context& ctx, const Tensor& indices, const Tensor& weight) {
  const auto node = record<EmbeddingBackward>(ctx, weight);
  if (node) node->table = weight.shape(), node->indices.save(ctx, indices);
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  Tensor out = empty(ctx, shape, weight.dtype(), Op::embedding);
  gather_rows(ctx, out, weight, indices);
  set_history(out, node);
  return out;
}

}  // namespace qlp

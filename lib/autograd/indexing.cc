#include "autograd/indexing.h"

#include <algorithm>
#include <bit>

#include "autograd/record.h"
#include "tensor/compute.h"
#include "tensor/cub_scratch.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"
#include "tensor/routing_kernels.h"

namespace qlp {
namespace {

constexpr std::int64_t kSmallSort = 4096;  // Sorting.cpp, should_use_small_sort

struct TopkBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  Shape source;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Grads out;
    out.push_back(empty(ctx, source, grads[0].dtype(), Op::zeros));
    if (auto* kernels = routing_kernels(ctx, out[0]))
      kernels->scatter_last(ctx.stream, array_of(out[0]), array_of(grads[0]), array_of(at));
    return out;
  }
  void release() override { indices.release(); }
};

struct ScatterBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Grads out;
    out.push_back(empty(ctx, at.shape(), grads[0].dtype(), Op::gather));
    if (auto* kernels = routing_kernels(ctx, out[0]))
      kernels->gather_last(ctx.stream, array_of(out[0]), array_of(grads[0]), array_of(at));
    return out;
  }
  void release() override { indices.release(); }
};

/// index_put_ with accumulate on rows: the indices are wrapped, sorted beside their places, and summed in that order
/// (ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel, torch 2.4 to 2.14).
void index_put_scratch(Context& ctx, std::int64_t rows, std::int64_t count) {
  Tensor wrapped = int64s(ctx, {count}, Op::index_put);
  const Tensor linear = int64s(ctx, {count}, Op::index_put);
  wrapped.reset();
  const Tensor sorted = int64s(ctx, {count}, Op::index_put), order = int64s(ctx, {count}, Op::index_put);
  const Tensor range = int64s(ctx, {count}, Op::arange);
  const auto largest = static_cast<std::uint64_t>(std::max<std::int64_t>(rows - 1, 1));
  scratch(ctx, sort_pairs_bytes(count, static_cast<int>(std::bit_width(largest)), ctx.device.traits()), Op::sort);
}

struct IndexBackward final : Node {
  using Node::Node;
  SavedTensor index;
  Shape source;
  DType dtype = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = index.unpack(ctx);
    Grads out;
    out.push_back(empty(ctx, source, dtype, Op::index_put));
    scatter_rows(ctx, out[0], grads[0], at);
    index_put_scratch(ctx, source[0], at.numel());
    return out;
  }
  void release() override { index.release(); }
};

/// As of rows, with a second index that is wrapped, scaled and added to the first.
struct IndexElementsBackward final : Node {
  using Node::Node;
  SavedTensor rows, columns;
  Shape source;
  DType dtype = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = rows.unpack(ctx), in = columns.unpack(ctx);
    Grads out;
    out.push_back(empty(ctx, source, dtype, Op::index_put));
    if (auto* kernels = routing_kernels(ctx, out[0]))
      kernels->put_elements(ctx.stream, array_of(out[0]), array_of(grads[0]), array_of(at), array_of(in));
    {
      const Tensor linear = int64s(ctx, {at.numel()}, Op::index_put);
      const Tensor wrapped = int64s(ctx, {in.numel()}, Op::index_put);
      const Tensor scaled = int64s(ctx, {in.numel()}, Op::index_put);
    }
    index_put_scratch(ctx, source.numel(), at.numel());
    return out;
  }
  void release() override { rows.release(), columns.release(); }
};

/// The gradient of what was added to passes; that of the rows is picked from it, and expanded to them, which are kept
/// for that (derivatives.yaml, index_add).
struct AddRowsBackward final : Node {
  using Node::Node;
  SavedTensor index, source;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = index.unpack(ctx);
    Grads out(2);
    if (wants(1)) {
      const Tensor rows = source.unpack(ctx);
      out[1] = empty(ctx, rows.shape(), grads[0].dtype(), Op::index_select);
      gather_rows(ctx, out[1], grads[0], at);
    }
    if (wants(0)) out[0] = grads[0];
    return out;
  }
  void release() override { index.release(), source.release(); }
};

/// The gradient of the copy without those rows, and the rows of it, which are expanded to what was copied; that is kept
/// for its shape (derivatives.yaml, index_copy).
struct CopyRowsBackward final : Node {
  using Node::Node;
  SavedTensor index, source;
  std::vector<std::int64_t> rows;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = index.unpack(ctx);
    Grads out(2);
    if (wants(1)) {
      const Tensor copied = source.unpack(ctx);
      out[1] = empty(ctx, copied.shape(), grads[0].dtype(), Op::index_select);
      for (std::size_t i = 0; i < rows.size(); ++i)
        copy_elements(ctx, out[1].narrow(0, static_cast<std::int64_t>(i), 1), grads[0].narrow(0, rows[i], 1));
    }
    if (wants(0)) {
      out[0] = empty_like(ctx, grads[0], Op::masked_fill);
      copy_elements(ctx, out[0], grads[0]);
      for (const std::int64_t row : rows) fill(ctx, out[0].narrow(0, row, 1), 0);
    }
    return out;
  }
  void release() override { index.release(), source.release(); }
};

struct PutBackward final : Node {
  using Node::Node;
  SavedTensor order;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = order.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], Op::index));
    gather_rows(ctx, out[0], grads[0], at);
    return out;
  }
  void release() override { order.release(); }
};

struct MaskBackward final : Node {
  using Node::Node;
  SavedTensor mask;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor masked = mask.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, grads[0], Op::masked_fill));
    compute(ctx, Binary::masked, out[0], grads[0], masked);
    return out;
  }
  void release() override { mask.release(); }
};

/// grad.expand(source), which takes no memory until it must lie densely.
struct SumBackward final : Node {
  using Node::Node;
  Shape source;
  DType dtype = DType::float32;
  int dim = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    Strides strides = contiguous_strides(source.with(dim, 1));
    strides[static_cast<std::size_t>(dim)] = 0;
    out.push_back(grads[0].strided(source, strides));
    if (grads[0].dtype() != dtype) {
      const Tensor cast = empty(ctx, source, dtype, Op::to_copy);
      copy_into(ctx, cast, out[0]);
      out[0] = cast;
    }
    return out;
  }
};

Tensor sum_over(Context& ctx, const Tensor& a, int dim, const Shape& shape, DType dtype) {
  const auto node = record<SumBackward>(ctx, a);
  if (node) node->source = a.shape(), node->dtype = a.dtype(), node->dim = dim;
  Tensor out = empty(ctx, shape, dtype, Op::sum);
  reduction_scratch(ctx, a, 1U << static_cast<unsigned>(dim), Op::sum);
  compute(ctx, Reduce::sum, out.view(a.shape().with(dim, 1)), a);
  set_history(out, node);
  return out;
}

/// self / other where the quotient takes the place of self.
struct DivInPlaceBackward final : Node {
  using Node::Node;
  SavedTensor original, divisor;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor other = divisor.unpack(ctx), self = original.unpack(ctx);
    Grads out(2);
    if (wants(1)) {  // -grad * ((self / other) / other); C++ evaluates the factors from the right
      const Tensor once = empty_like(ctx, self, Op::div);
      compute(ctx, Binary::div, once, self, other);
      const Tensor twice = empty_like(ctx, once, Op::div);
      compute(ctx, Binary::div, twice, once, other);
      const Tensor negative = empty_like(ctx, grads[0], Op::neg);
      compute(ctx, Unary::neg, negative, grads[0]);
      out[1] = empty_like(ctx, negative, Op::mul);
      compute(ctx, Binary::mul, out[1], negative, twice);
    }
    if (wants(0)) {
      out[0] = empty_like(ctx, grads[0], Op::div);
      compute(ctx, Binary::div, out[0], grads[0], other);
    }
    return out;
  }
  void release() override { divisor.release(), original.release(); }
};

}  // namespace

TopK topk(Context& ctx, const Tensor& a, std::int64_t k) {
  const auto node = record<TopkBackward>(ctx, a);
  if (node) node->source = a.shape();
  const Shape shape = a.shape().with(-1, k);
  TopK out{empty(ctx, shape, a.dtype(), Op::topk), empty(ctx, shape, DType::int64, Op::topk)};
  if (auto* kernels = routing_kernels(ctx, a))
    kernels->topk(ctx.stream, array_of(out.values), array_of(out.indices), array_of(a));
  set_history(out.values, node);
  if (node) node->indices.save_result(ctx, out.indices);
  return out;
}

Tensor max_last(Context& ctx, const Tensor& a) { return topk(ctx, a, 1).values; }

Tensor scatter_last(Context& ctx, const Tensor& like, const Tensor& indices, const Tensor& values) {
  Tensor out = empty_like(ctx, like, Op::zeros);
  const auto node = record<ScatterBackward>(ctx, values);
  if (node) node->indices.save(ctx, indices);
  if (auto* kernels = routing_kernels(ctx, out))
    kernels->scatter_last(ctx.stream, array_of(out), array_of(values), array_of(indices));
  set_history(out, node);
  return out;
}

Sorted sort(Context& ctx, const Tensor& a) {
  const std::int64_t count = a.numel();
  Sorted out{int64s(ctx, {count}, Op::sort), int64s(ctx, {count}, Op::sort)};
  const Tensor range = int64s(ctx, {count}, Op::arange);
  constexpr int kAllBits = 64;
  if (auto* kernels = routing_kernels(ctx, a))
    kernels->sort(ctx.stream, array_of(out.values), array_of(out.order), array_of(a));
  if (count > kSmallSort) scratch(ctx, sort_pairs_bytes(count, kAllBits, ctx.device.traits()), Op::sort);
  return out;
}

Tensor index_rows(Context& ctx, const Tensor& a, const Tensor& index) {
  const auto node = record<IndexBackward>(ctx, a);
  if (node) {
    node->source = a.shape(), node->dtype = a.dtype();
    node->index.save(ctx, index);
  }
  Tensor out = empty(ctx, a.shape().with(0, index.numel()), a.dtype(), Op::index);
  gather_rows(ctx, out, a, index);
  set_history(out, node);
  return out;
}

Tensor index_elements(Context& ctx, const Tensor& a, const Tensor& rows, const Tensor& columns) {
  const auto node = record<IndexElementsBackward>(ctx, a);
  if (node) {
    node->source = a.shape(), node->dtype = a.dtype();
    node->rows.save(ctx, rows), node->columns.save(ctx, columns);
  }
  Tensor out = empty(ctx, {rows.numel(), 1}, a.dtype(), Op::index);
  if (auto* kernels = routing_kernels(ctx, out))
    kernels->gather_elements(ctx.stream, array_of(out), array_of(a), array_of(rows), array_of(columns));
  set_history(out, node);
  return out;
}

Tensor add_rows_in_place(Context& ctx, const Tensor& into, const Tensor& index, const Tensor& source) {
  const auto node = record<AddRowsBackward>(ctx, into, source);
  if (node) node->index.save(ctx, index), node->source.save(ctx, source);
  Tensor out = into.alias();
  if (Kernels* kernels = ctx.kernels(out); kernels && index.numel() > 0)
    kernels->scatter_add_rows(ctx.stream, array_of(out), array_of(source), array_of(index));
  set_history(out, node);
  return out;
}

Tensor nonzero(Context& ctx, const Tensor& a, std::int64_t found) {
  Tensor count = empty(ctx, {1}, DType::int32, Op::nonzero);
  scratch(ctx, count_bytes(a.numel(), ctx.device.traits()), Op::nonzero);
  ctx.device.synchronize();
  Tensor out = empty(ctx, {static_cast<std::int64_t>(a.shape().rank()), found}, DType::int64, Op::nonzero);
  scratch(ctx, select_bytes(a.numel(), ctx.device.traits()), Op::nonzero);
  return out;
}

Tensor copy_rows(Context& ctx, const Tensor& a, const std::vector<std::int64_t>& index, const Tensor& rows) {
  const Tensor at = int64s(ctx, {static_cast<std::int64_t>(index.size())}, Op::index_copy);
  const auto node = record<CopyRowsBackward>(ctx, a, rows);
  if (node) node->rows = index, node->index.save(ctx, at), node->source.save(ctx, rows);
  Tensor out = empty_like(ctx, a, Op::index_copy);
  copy_elements(ctx, out, a);
  for (std::size_t i = 0; i < index.size(); ++i)
    copy_elements(ctx, out.narrow(0, index[i], 1), rows.narrow(0, static_cast<std::int64_t>(i), 1));
  set_history(out, node);
  return out;
}

Tensor put_rows(Context& ctx, const Tensor& values, const Tensor& order) {
  const auto node = record<PutBackward>(ctx, values);
  if (node) node->order.save(ctx, order);
  Tensor out = empty_like(ctx, values, Op::empty_like);
  scatter_rows(ctx, out, values, order);
  set_history(out, node);
  return out;
}

Tensor mask_rows(Context& ctx, const Tensor& a, const Tensor& mask, bool in_place) {
  const auto node = record<MaskBackward>(ctx, a);
  if (node) node->mask.save(ctx, mask);
  Tensor out = in_place ? a.alias() : empty_like(ctx, a, Op::masked_fill);
  compute(ctx, Binary::masked, out, a, mask);
  set_history(out, node);
  return out;
}

Tensor sum_middle(Context& ctx, const Tensor& a) {
  const DType dtype = ctx.autocast.enabled ? DType::float32 : a.dtype();
  return sum_over(ctx, a, 1, {a.size(0), a.size(2)}, dtype);
}

Tensor sum_last(Context& ctx, const Tensor& a) {
  const int last = static_cast<int>(a.shape().rank()) - 1;
  return sum_over(ctx, a, last, a.shape().with(-1, 1), a.dtype());
}

Tensor div_in_place(Context& ctx, const Tensor& a, const Tensor& b) {
  const auto node = record<DivInPlaceBackward>(ctx, a, b);
  if (node) {
    node->divisor.save(ctx, b);
    if (node->wants(1)) {
      const Tensor original = empty_like(ctx, a, Op::clone);
      copy_into(ctx, original, a);
      node->original.save(ctx, original);
    }
  }
  compute(ctx, Binary::div, a, a, b);
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}

}  // namespace qlp

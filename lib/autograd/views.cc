#include "autograd/views.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/record.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// The strides of a view of `a` in `shape`, or none if elements would have to move (ATen/TensorUtils.cpp,
/// computeStride).
std::optional<Strides> view_strides(const Tensor& a, const Shape& shape) {
  if (a.contiguous()) return contiguous_strides(shape);
  Strides strides{};
  int view_dim = static_cast<int>(shape.rank()) - 1;
  const int rank = static_cast<int>(a.shape().rank());
  std::int64_t base = a.strides()[static_cast<std::size_t>(rank - 1)];
  std::int64_t run = 1, taken = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    run *= a.size(dim);
    const bool ends =
        dim == 0 || (a.size(dim - 1) != 1 && a.strides()[static_cast<std::size_t>(dim - 1)] != run * base);
    if (!ends) continue;
    while (view_dim >= 0 && (taken < run || shape[view_dim] == 1)) {
      strides[static_cast<std::size_t>(view_dim)] = taken * base;
      taken *= shape[view_dim--];
    }
    if (taken != run) return std::nullopt;
    if (dim > 0) base = a.strides()[static_cast<std::size_t>(dim - 1)], run = taken = 1;
  }
  return view_dim == -1 ? std::optional(strides) : std::nullopt;
}

Tensor reshaped(Context& ctx, const Tensor& a, const Shape& shape, Op op) {
  if (const auto strides = view_strides(a, shape)) return a.strided(shape, *strides);
  Tensor out = empty(ctx, shape, a.dtype(), op);
  copy_elements(ctx, out, a);
  return out;
}

struct ReshapeBackward final : Node {
  using Node::Node;
  Shape source;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(reshaped(ctx, grads[0], source, Op::contiguous));
    return out;
  }
};

struct TransposeBackward final : Node {
  using Node::Node;
  int i = 0, j = 1;
  Grads backward(Context&, Grads& grads) override {
    Grads out;
    out.push_back(grads[0].transpose(i, j));
    return out;
  }
};

struct SliceBackward final : Node {
  using Node::Node;
  Shape source;
  int dim = 0;
  std::int64_t start = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(empty(ctx, source, grads[0].dtype(), Op::slice_backward));
    if (ctx.kernels(out[0])) {
      fill(ctx, out[0], 0);
      copy_into(ctx, out[0].narrow(dim, start, grads[0].size(dim)), grads[0]);
    }
    return out;
  }
};

struct CatBackward final : Node {
  using Node::Node;
  int dim = 0;
  std::int64_t first = 0, second = 0;
  Grads backward(Context&, Grads& grads) override {
    Grads out(2);
    if (wants(0)) out[0] = grads[0].narrow(dim, 0, first);
    if (wants(1)) out[1] = grads[0].narrow(dim, first, second);
    return out;
  }
};

/// Pieces without a gradient are zeros of their size (split_with_sizes_backward in FunctionsManual.cpp).
struct SplitBackward final : Node {
  using Node::Node;
  Shape source;
  DType dtype = DType::float32;
  int dim = 0;
  std::vector<std::int64_t> lengths;
  Grads backward(Context& ctx, Grads& grads) override {
    std::vector<Tensor> zeros;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      if (!grads[i].defined()) zeros.push_back(empty(ctx, source.with(dim, lengths[i]), dtype, Op::zeros));
    Grads out;
    out.push_back(empty(ctx, source, dtype, Op::cat));
    if (ctx.kernels(out[0])) {
      fill(ctx, out[0], 0);
      std::int64_t start = 0;
      for (std::size_t i = 0; i < lengths.size(); start += lengths[i++])
        if (grads[i].defined()) copy_into(ctx, out[0].narrow(dim, start, lengths[i]), grads[i]);
    }
    return out;
  }
};

/// Sums the gradients of the copies of each head.
struct RepeatBackward final : Node {
  using Node::Node;
  std::int64_t times = 1;
  int slices = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor& g = grads[0];
    const Shape five{g.size(0), g.size(1) / times, times, g.size(2), g.size(3)};
    const Shape source{g.size(0), g.size(1) / times, g.size(2), g.size(3)};
    Tensor grad;
    {
      const Tensor grouped = reshaped(ctx, g, five, Op::contiguous);
      grad = empty(ctx, source, g.dtype(), Op::sum);
      if (ctx.kernels(grad)) compute(ctx, Reduce::sum, grad.view(five.with(2, 1)), grouped);
    }
    grads[0].reset();
    // x[:, :, None, :, :] is four slices of everything, each of which pads its gradient with nothing.
    for (int i = 0; i < slices; ++i) {
      const Tensor padded = empty(ctx, source, grad.dtype(), Op::slice_backward);
      copy_into(ctx, padded, grad);
      grad = padded;
    }
    Grads out;
    out.push_back(std::move(grad));
    return out;
  }
};

}  // namespace

Tensor reshape(Context& ctx, const Tensor& a, const Shape& shape) {
  const auto node = record<ReshapeBackward>(ctx, a);
  if (node) node->source = a.shape();
  Tensor out = reshaped(ctx, a, shape, Op::clone);
  set_history(out, node);
  return out;
}

Tensor transpose(Context& ctx, const Tensor& a, int i, int j) {
  const auto node = record<TransposeBackward>(ctx, a);
  if (node) node->i = i, node->j = j;
  Tensor out = a.transpose(i, j);
  set_history(out, node);
  return out;
}

Tensor slice(Context& ctx, const Tensor& a, int dim, std::int64_t start, std::int64_t length) {
  const auto node = record<SliceBackward>(ctx, a);
  if (node) node->source = a.shape(), node->dim = dim, node->start = start;
  Tensor out = a.narrow(dim, start, length);
  set_history(out, node);
  return out;
}

Tensor expand(Context& ctx, const Tensor& a, const Shape& shape) {
  const auto node = record<PassBackward>(ctx, a);
  Strides strides = a.strides();
  for (int dim = 0; dim < static_cast<int>(shape.rank()); ++dim)
    if (a.size(dim) != shape[dim]) strides[static_cast<std::size_t>(dim)] = 0;
  Tensor out = a.strided(shape, strides);
  set_history(out, node);
  return out;
}

Tensor cat(Context& ctx, const Tensor& a, const Tensor& b, int dim) {
  const auto node = record<CatBackward>(ctx, a, b);
  if (node) node->dim = dim, node->first = a.size(dim), node->second = b.size(dim);
  Tensor out = empty(ctx, a.shape().with(dim, a.size(dim) + b.size(dim)), promote(a, b), Op::cat);
  if (ctx.kernels(out)) {
    copy_into(ctx, out.narrow(dim, 0, a.size(dim)), a);
    copy_into(ctx, out.narrow(dim, a.size(dim), b.size(dim)), b);
  }
  set_history(out, node);
  return out;
}

std::vector<Tensor> split(Context& ctx, const Tensor& a, const std::vector<std::int64_t>& lengths, int dim) {
  const auto node = record<SplitBackward>(ctx, a);
  if (node) node->source = a.shape(), node->dtype = a.dtype(), node->dim = dim, node->lengths = lengths;
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  for (const auto length : lengths) {
    pieces.push_back(a.narrow(dim, start, length));
    set_history(pieces.back(), node);
    start += length;
  }
  return pieces;
}

namespace {

Tensor repeat_heads(Context& ctx, const Tensor& a, std::int64_t times, int slices, bool copies) {
  if (times == 1) return a;
  const auto node = record<RepeatBackward>(ctx, a);
  if (node) node->times = times, node->slices = slices;
  const Shape five{a.size(0), a.size(1), times, a.size(2), a.size(3)};
  const Strides& steps = a.strides();
  const Tensor wide = a.strided(five, {steps[0], steps[1], 0, steps[2], steps[3]});
  const Shape shape = a.shape().with(1, a.size(1) * times);
  Tensor out = copies ? empty(ctx, shape, a.dtype(), Op::clone) : reshaped(ctx, wide, shape, Op::clone);
  if (copies) copy_elements(ctx, out, wide);
  set_history(out, node);
  return out;
}

}  // namespace

Tensor repeat_kv(Context& ctx, const Tensor& a, std::int64_t times, bool full_slices_record) {
  return repeat_heads(ctx, a, times, full_slices_record ? 4 : 0, false);
}
Tensor repeat_interleave(Context& ctx, const Tensor& a, std::int64_t times) {
  return repeat_heads(ctx, a, times, 0, true);
}

Tensor contiguous(Context& ctx, const Tensor& a) {
  if (a.contiguous()) return a;
  const auto node = record<ReshapeBackward>(ctx, a);
  if (node) node->source = a.shape();
  Tensor out = empty(ctx, a.shape(), a.dtype(), Op::contiguous);
  copy_into(ctx, out, a);
  set_history(out, node);
  return out;
}

Tensor detach(const Tensor& a) { return a.alias(); }

}  // namespace qlp

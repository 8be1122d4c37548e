#include "autograd/parallel.h"

#include <algorithm>

#include "autograd/record.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Functional collectives give a new tensor (torch/distributed/_functional_collectives.py, all_reduce).
Tensor reduced(Context& ctx, const Tensor& part, const RankGroup& group) {
  Tensor sum = empty_like(ctx, part, Op::all_reduce);
  copy_elements(ctx, sum, part);
  all_reduce(ctx, group, sum, ReduceOp::sum);
  return sum;
}

struct AllReduceGradient final : Node {
  using Node::Node;
  RankGroup group;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(reduced(ctx, grads[0], group));
    return out;
  }
};

struct AllReduceGradientInPlace final : Node {
  using Node::Node;
  RankGroup group;
  Grads backward(Context& ctx, Grads& grads) override {
    all_reduce(ctx, group, grads[0], ReduceOp::sum);
    Grads out;
    out.push_back(grads[0]);
    return out;
  }
};

/// Shard._to_replicate_tensor of torch/distributed/tensor/placement_types.py: parts are gathered behind each other, and
/// joined if that is not how they lie.
Tensor joined(Context& ctx, const Tensor& part, int dim, const RankGroup& group) {
  Tensor parts = empty(ctx, part.shape().with(0, part.size(0) * group.size), part.dtype(), Op::all_gather);
  all_gather(ctx, group, parts, part);
  if (dim == 0) return parts;
  Tensor whole = empty(ctx, part.shape().with(dim, part.size(dim) * group.size), part.dtype(), Op::cat);
  for (std::int64_t rank = 0; rank < group.size && ctx.kernels(whole); ++rank)
    copy_into(ctx, whole.narrow(dim, rank * part.size(dim), part.size(dim)),
              parts.narrow(0, rank * part.size(0), part.size(0)));
  return whole;
}

/// Shard._replicate_to_shard clones.
Tensor own_part(Context& ctx, const Tensor& a, int dim, const RankGroup& group) {
  const std::int64_t length = a.size(dim) / group.size;
  Tensor part = empty(ctx, a.shape().with(dim, length), a.dtype(), Op::clone);
  copy_into(ctx, part, a.narrow(dim, own_place(ctx, group) * length, length));
  return part;
}

Counts times(Counts counts, std::int64_t factor) {
  for (std::int64_t& count : counts) count *= factor;
  return counts;
}

Tensor exchanged(Context& ctx, const Tensor& a, const RowCounts& rows, const RankGroup& group) {
  Tensor received = empty(ctx, a.shape().with(0, rows.received), a.dtype(), Op::all_to_all);
  const std::int64_t width = a.numel() / std::max<std::int64_t>(a.size(0), 1);
  all_to_all(ctx, group, received, times(rows.from, width), a, times(rows.to, width));
  return received;
}

struct CutBackward final : Node {
  using Node::Node;
  RankGroup group;
  int dim = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(joined(ctx, grads[0], dim, group));
    return out;
  }
};

struct ExchangeBackward final : Node {
  using Node::Node;
  RankGroup group;
  RowCounts rows;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(exchanged(ctx, grads[0], rows, group));
    return out;
  }
};

struct GatherBackward final : Node {
  using Node::Node;
  RankGroup group;
  int dim = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(own_part(ctx, grads[0], dim, group));
    return out;
  }
};

}  // namespace

Tensor all_reduce_gradient(Context& ctx, const Tensor& a, const RankGroup& group) {
  const auto node = record<AllReduceGradient>(ctx, a);
  if (!node) return a;
  node->group = group;
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}

Tensor all_reduce_sum(Context& ctx, const Tensor& a, const RankGroup& group) {
  const auto node = record<PassBackward>(ctx, a);
  Tensor out = reduced(ctx, a, group);
  set_history(out, node);
  return out;
}

Tensor all_reduce_gradient_in_place(Context& ctx, const Tensor& a, const RankGroup& group) {
  const auto node = record<AllReduceGradientInPlace>(ctx, a);
  if (!node) return a;
  node->group = group;
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}

Tensor all_reduce_in_place(Context& ctx, const Tensor& a, const RankGroup& group) {
  const auto node = record<PassBackward>(ctx, a);
  all_reduce(ctx, group, a, ReduceOp::sum);
  Tensor out = a.alias();
  set_history(out, node);
  return out;
}

Tensor gather_parts(Context& ctx, const Tensor& a, int dim, const RankGroup& group) {
  const auto node = record<GatherBackward>(ctx, a);
  if (node) node->group = group, node->dim = dim;
  Tensor out = joined(ctx, a, dim, group);
  set_history(out, node);
  return out;
}

Tensor cut_part(Context& ctx, const Tensor& a, int dim, const RankGroup& group) {
  const auto node = record<CutBackward>(ctx, a);
  if (node) node->group = group, node->dim = dim;
  Tensor out = own_part(ctx, a, dim, group);
  set_history(out, node);
  return out;
}

Tensor exchange_rows(Context& ctx, const Tensor& a, const RowCounts& rows, const RankGroup& group) {
  const auto node = record<ExchangeBackward>(ctx, a);
  if (node) node->group = group, node->rows = {.received = a.size(0), .from = rows.to, .to = rows.from};
  Tensor out = exchanged(ctx, a, rows, group);
  set_history(out, node);
  return out;
}

}  // namespace qlp

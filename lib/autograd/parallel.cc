#include "autograd/parallel.h"

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

struct PassBackward final : Node {
  using Node::Node;
  Grads backward(Context&, Grads& grads) override {
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
  return empty(ctx, part.shape().with(dim, part.size(dim) * group.size), part.dtype(), Op::cat);
}

/// Shard._replicate_to_shard clones.
Tensor own_part(Context& ctx, const Tensor& a, int dim, const RankGroup& group) {
  return empty(ctx, a.shape().with(dim, a.size(dim) / group.size), a.dtype(), Op::clone);
}

Tensor exchanged(Context& ctx, const Tensor& a, std::int64_t rows, const RankGroup& group) {
  Tensor received = empty(ctx, a.shape().with(0, rows), a.dtype(), Op::all_to_all);
  communicate(ctx, Collective::all_to_all, group, bytes_of(a.shape(), a.dtype()).count());
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
  std::int64_t rows = 0;
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

Tensor exchange_rows(Context& ctx, const Tensor& a, std::int64_t rows, const RankGroup& group) {
  const auto node = record<ExchangeBackward>(ctx, a);
  if (node) node->group = group, node->rows = a.size(0);
  Tensor out = exchanged(ctx, a, rows, group);
  set_history(out, node);
  return out;
}

}  // namespace qlp

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

struct PassBackward final : Node {
  using Node::Node;
  Grads backward(Context&, Grads& grads) override {
    Grads out;
    out.push_back(grads[0]);
    return out;
  }
};

struct GatherBackward final : Node {
  using Node::Node;
  Shape source;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out;
    out.push_back(empty(ctx, source, grads[0].dtype(), Op::contiguous));
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

Tensor all_gather_last(Context& ctx, const Tensor& a, const RankGroup& group) {
  const auto node = record<GatherBackward>(ctx, a);
  if (node) node->source = a.shape();
  const Tensor parts = empty(ctx, a.shape().with(0, a.size(0) * group.size), a.dtype(), Op::all_gather);
  all_gather(ctx, group, parts, a);
  Tensor out = empty(ctx, a.shape().with(-1, a.size(-1) * group.size), a.dtype(), Op::cat);
  set_history(out, node);
  return out;
}

}  // namespace qlp

// How an operation leaves a node behind.
#pragma once

#include "autograd/node.h"
#include "autograd/saved_tensor.h"

namespace qlp {

/// A node of type N with an edge to each operand, or none if no gradient is wanted through this operation.
template <class N, class... Operands>
Ref<N> record(Context& ctx, const Operands&... operands) {
  if (!records(ctx, operands...)) return nullptr;
  auto node = make_ref<N>(ctx);
  (node->add_edge(operands), ...);
  return node;
}

/// Hands the gradient on to each operand as it is; the engine sums where it was widened.
struct PassBackward final : Node {
  using Node::Node;
  Grads backward(Context&, Grads& grads) override {
    Grads out;
    for (const Edge& edge : edges()) out.push_back(edge.node ? grads[0] : Tensor());
    return out;
  }
};

/// Gradients that a kernel makes in any case go where nobody wants them.
inline void drop_unwanted(const Node& node, Grads& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (!node.wants(i)) grads[i].reset();
}

}  // namespace qlp

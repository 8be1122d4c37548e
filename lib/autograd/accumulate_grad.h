// The end of a gradient's way: it becomes, or is added to, the .grad of a leaf
// (torch/csrc/autograd/functions/accumulate_grad.h).
#pragma once

#include "autograd/node.h"

namespace qlp {

class AccumulateGrad final : public Node {
 public:
  AccumulateGrad(Tensor leaf, StreamId stream);
  ~AccumulateGrad() override;

  /// Takes the gradient over without a copy if nobody else holds it, else clones it; adds in place to one that is
  /// there.
  Grads backward(Context& ctx, Grads& grads) override;

  const Tensor& leaf() const { return leaf_; }

 private:
  /// True if `incoming` was taken over.
  bool accumulate(Context& ctx, const Tensor& incoming) const;

  Tensor leaf_;
};

}  // namespace qlp

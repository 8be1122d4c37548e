#include "nn/shared_expert.h"

#include "autograd/pointwise.h"

namespace qlp {

Tensor weigh_shared(Context& ctx, LinearModule& gate, const Tensor& hidden, const Tensor& output) {
  const Tensor weights = sigmoid(ctx, gate.forward(ctx, hidden));
  return mul(ctx, weights, output);
}

}  // namespace qlp

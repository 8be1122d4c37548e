#include "optim/whole_gradient.h"

#include "autograd/node.h"
#include "tensor/factories.h"

namespace qlp {

Tensor like_gradient(Context& ctx, const Tensor& parameter, Op op) {
  const auto& whole = autograd_data(parameter).whole_grad;
  return whole ? empty(ctx, *whole, grad_of(parameter).dtype(), op) : empty_like(ctx, grad_of(parameter), op);
}

std::vector<Tensor> cut_gradients(Context& ctx, const std::vector<Tensor>& parameters, int times) {
  std::vector<Tensor> parts;
  for (int i = 0; i < times; ++i)
    for (const Tensor& parameter : parameters)
      if (autograd_data(parameter).whole_grad) parts.push_back(empty_like(ctx, grad_of(parameter), Op::clone));
  return parts;
}

}  // namespace qlp

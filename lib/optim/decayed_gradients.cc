#include "optim/decayed_gradients.h"

#include "autograd/node.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

std::vector<Tensor> decayed_gradients(Context& ctx, const std::vector<Tensor>& parameters, double weight_decay) {
  std::vector<Tensor> out;
  for (const Tensor& parameter : parameters) {
    const Tensor& grad = grad_of(parameter);
    out.push_back(weight_decay == 0 ? grad : empty_like(ctx, grad, Op::add));
    if (weight_decay != 0) compute(ctx, Binary::add, out.back(), grad, parameter, weight_decay);
  }
  return out;
}

}  // namespace qlp

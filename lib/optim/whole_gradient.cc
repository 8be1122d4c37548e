#include "optim/whole_gradient.h"

#include "autograd/node.h"
#include "tensor/collective.h"
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

std::vector<Tensor> gathered_beside_gradients(Context& ctx, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gathered;
  for (const Tensor& parameter : parameters)
    if (const auto& whole = autograd_data(parameter).whole_grad) {
      const Tensor& all = gathered.emplace_back(empty(ctx, *whole, parameter.dtype(), Op::all_gather));
      communicate(ctx, Collective::all_gather, {MeshAxis::tp, all.size(0) / parameter.size(0)},
                  static_cast<std::uint64_t>(all.numel()) * size_of(all.dtype()));
    }
  return gathered;
}

}  // namespace qlp

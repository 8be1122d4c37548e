#include "quant/bias_gradient.h"

#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {

Tensor bias_gradient(Context& ctx, const Tensor& grad, DType dtype) {
  Shape rest;
  for (int i = 1; i < static_cast<int>(grad.shape().rank()); ++i) rest.push_back(grad.size(i));
  Tensor out = empty(ctx, rest, dtype, Op::sum);
  reduction_scratch(ctx, grad, 1, Op::sum);
  if (ctx.kernels(grad)) compute(ctx, Reduce::sum, out.view(grad.shape().with(0, 1)), grad);
  return out;
}

}  // namespace qlp

#include "nn/tensor_parallel.h"

#include <utility>

#include "autograd/parallel.h"

namespace qlp {

Tensor enter(Context& ctx, const Tensor& x, const TensorParallel& parallel) {
  return parallel.cuts_output() ? all_reduce_gradient(ctx, x, parallel.group()) : x;
}

Tensor leave(Context& ctx, Tensor y, const TensorParallel& parallel) {
  if (parallel.style == TpStyle::rowwise) return all_reduce_sum(ctx, y, parallel.group());
  if (parallel.style == TpStyle::colwise_gather_output) return all_gather_last(ctx, y, parallel.group());
  return y;
}

}  // namespace qlp

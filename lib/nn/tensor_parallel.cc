#include "nn/tensor_parallel.h"

#include <utility>

#include "autograd/parallel.h"

namespace qlp {

Tensor enter(Context& ctx, const Tensor& x, const TensorParallel& parallel) {
  if (parallel.cuts_output()) return all_reduce_gradient(ctx, x, parallel.group());
  return parallel.style == TpStyle::rowwise_split_input ? cut_part(ctx, x, -1, parallel.group()) : x;
}

Tensor leave(Context& ctx, Tensor y, const TensorParallel& parallel) {
  // Where nothing is recorded the libraries leave DTensor out, and sum in place.
  if (parallel.cuts_input())
    return ctx.grad_enabled ? all_reduce_sum(ctx, y, parallel.group()) : all_reduce_in_place(ctx, y, parallel.group());
  if (parallel.style == TpStyle::colwise_gather_output) return gather_parts(ctx, y, -1, parallel.group());
  return y;
}

}  // namespace qlp

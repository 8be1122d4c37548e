// Products of groups of rows, each with a matrix of its own, in one kernel; and sums of stacks of matrices.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// F.grouped_mm(x, weight.transpose(-2, -1), offs=offsets): rows of x [S, K], in groups that end at `offsets` [E] of
/// int32, with weight [E, N, K] give [S, N].
Tensor grouped_mm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets);
/// The same of a weight that is turned already, [E, K, N].
Tensor grouped_mm_turned(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& offsets);

/// torch.baddbmm: stack [E, N, K] + alpha * left [E, N, R] x right [E, R, K], whose stack is frozen.
Tensor add_products(Context& ctx, const Tensor& stack, const Tensor& left, const Tensor& right, double alpha);

}  // namespace qlp

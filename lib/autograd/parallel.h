// What ranks that share a layer say to each other on its borders (torch.distributed.tensor's redistribute).
#pragma once

#include "autograd/node.h"
#include "tensor/work.h"

namespace qlp {

/// Replicated on the way in; the gradients, of which each rank has a part, are summed over the group.
Tensor all_reduce_gradient(Context& ctx, const Tensor& a, const RankGroup& group);
/// A sum of the ranks' parts; the gradient passes.
Tensor all_reduce_sum(Context& ctx, const Tensor& a, const RankGroup& group);
/// The ranks' parts joined in the last dimension; the gradient is cut to the rank's own.
Tensor all_gather_last(Context& ctx, const Tensor& a, const RankGroup& group);

}  // namespace qlp

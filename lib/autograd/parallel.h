// What ranks that share a layer say to each other on its borders (torch.distributed.tensor's redistribute).
#pragma once

#include "autograd/node.h"
#include "tensor/communicator.h"

namespace qlp {

/// Replicated on the way in; the gradients, of which each rank has a part, are summed over the group.
Tensor all_reduce_gradient(Context& ctx, const Tensor& a, const RankGroup& group);
/// A sum of the ranks' parts; the gradient passes.
Tensor all_reduce_sum(Context& ctx, const Tensor& a, const RankGroup& group);
/// The same two by collectives that write where they read (transformers distributed/parallel_utils.py,
/// _AllReduceBackward, _AllReduceForward).
Tensor all_reduce_gradient_in_place(Context& ctx, const Tensor& a, const RankGroup& group);
Tensor all_reduce_in_place(Context& ctx, const Tensor& a, const RankGroup& group);
/// The ranks' parts joined along `dim`; the gradient is cut to the rank's own.
Tensor gather_parts(Context& ctx, const Tensor& a, int dim, const RankGroup& group);
/// The rank's own part along `dim`, a copy; the gradients of the parts are joined.
Tensor cut_part(Context& ctx, const Tensor& a, int dim, const RankGroup& group);
/// How many rows go to each rank and come from it. On the dry device nobody knows: only how many come in all.
struct RowCounts {
  std::int64_t received = 0;
  Counts from{}, to{};
};
/// Rows of a [N, ...], sorted by the ranks that they are for, go to them, and others' rows come; gradients go the way
/// back.
Tensor exchange_rows(Context& ctx, const Tensor& a, const RowCounts& rows, const RankGroup& group);

}  // namespace qlp

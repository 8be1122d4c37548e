// Rows of a table by index.
#pragma once

#include "autograd/node.h"
#include "tensor/work.h"

namespace qlp {

/// F.embedding: indices [B, S] of int64 with weight [V, H] give [B, S, H].
Tensor embedding(Context& ctx, const Tensor& indices, const Tensor& weight);

/// The same where each rank of `group` has part of the rows: lookups of other ranks' rows are masked, and the parts are
/// summed. The gradient is made for the whole table, on every rank; it stays whole until it is used, or until it meets
/// that of a tied head.
Tensor vocab_parallel_embedding(Context& ctx, const Tensor& indices, const Tensor& weight, const RankGroup& group,
                                bool tied);

}  // namespace qlp

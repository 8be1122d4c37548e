// Rows of a table by index.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// F.embedding: indices [B, S] of int64 with weight [V, H] give [B, S, H].
Tensor embedding(Context& ctx, const Tensor& indices, const Tensor& weight);

}  // namespace qlp

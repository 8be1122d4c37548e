// Gradients that are those of a whole tensor on every rank, where the parameter is the rank's part of it: of an
// embedding whose rows ranks share (torch/distributed/tensor/_ops/_embedding_ops.py, embedding_dense_backward;
// torch 2.14).
#pragma once

#include <vector>

#include "tensor/context.h"

namespace qlp {

/// A tensor as large as the gradient of `parameter` is in memory.
Tensor like_gradient(Context& ctx, const Tensor& parameter, Op op);

/// What an operation on parameters and gradients takes for its time: of each gradient that is whole the rank's part is
/// copied, once for each time that the operation names it (placement_types.py, Shard._replicate_to_shard).
std::vector<Tensor> cut_gradients(Context& ctx, const std::vector<Tensor>& parameters, int times = 1);

/// The same of an operation that writes into gradients, which stay as they are: of what it reads beside one that is
/// whole, and is like the parameter, all ranks' parts are gathered.
std::vector<Tensor> gathered_beside_gradients(Context& ctx, const std::vector<Tensor>& parameters);

}  // namespace qlp

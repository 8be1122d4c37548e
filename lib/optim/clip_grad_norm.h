// Clipping by the norm of all gradients (torch/nn/utils/clip_grad.py; ATen/native/cuda/ForeachReduceOp.cu).
#pragma once

#include <functional>
#include <vector>

#include "tensor/context.h"

namespace qlp {

/// The norm of the gradients of these parameters, which are scaled in place; none have gradients: a 0 on the device.
Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters);

/// Makes the value of all ranks out of that of one. Gives a new tensor.
using ReduceNorm = std::function<Tensor(Context& ctx, const Tensor& norm)>;

/// The norm alone (torch.nn.utils.get_total_norm). `reduce`, if any, is applied to the norms of the single gradients.
Tensor total_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, const ReduceNorm& reduce = {});

/// Scales gradients in place by max_norm / (norm + 1e-6), at most 1. `reduce`, if any, is applied to that sum.
void scale_by_norm(Context& ctx, const Tensor& norm, const ReduceNorm& reduce = {});

/// The norm of each gradient of one dtype, all by one kernel: 0-dim tensors in that dtype.
std::vector<Tensor> foreach_norm(Context& ctx, const std::vector<Tensor>& gradients);

}  // namespace qlp

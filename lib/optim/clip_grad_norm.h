// Clipping by the norm of all gradients (torch/nn/utils/clip_grad.py; ATen/native/cuda/ForeachReduceOp.cu).
#pragma once

#include <vector>

#include "tensor/context.h"

namespace qlp {

/// The norm of the gradients of these parameters, which are scaled in place; none have gradients: a 0 on the device.
Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters);

/// The norm alone (torch.nn.utils.get_total_norm).
Tensor total_grad_norm(Context& ctx, const std::vector<Tensor>& parameters);

/// The norm of each gradient of one dtype, all by one kernel: 0-dim tensors in that dtype.
std::vector<Tensor> foreach_norm(Context& ctx, const std::vector<Tensor>& gradients);

}  // namespace qlp

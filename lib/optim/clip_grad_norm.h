// Clipping by the norm of all gradients (torch/nn/utils/clip_grad.py; ATen/native/cuda/ForeachReduceOp.cu).
#pragma once

#include <functional>
#include <vector>

#include "tensor/context.h"

namespace qlp {

/// The norm of the gradients of these parameters, which are scaled in place to at most `max_norm`; none have gradients:
/// a 0 on the host.
Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm);

/// Makes the value of all ranks out of that of one. Gives a new tensor.
using ReduceNorm = std::function<Tensor(Context& ctx, const Tensor& norm)>;

/// The norm alone (torch.nn.utils.get_total_norm). `reduce`, if any, is applied to the norms of the single gradients.
Tensor total_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, const ReduceNorm& reduce = {});

/// Scales gradients in place by max_norm / (norm + 1e-6), at most 1. `reduce`, if any, is applied to that sum; then
/// `norm` becomes that of all ranks.
void scale_by_norm(Context& ctx, const std::vector<Tensor>& parameters, const Tensor& norm, double max_norm,
                   const ReduceNorm& reduce = {});

/// The root of the sum of the squares of `x`, into a tensor of one element.
void norm_into(Context& ctx, const Tensor& norm, const Tensor& x);
/// 0-dim tensors side by side in one that is there.
void stack_into(Context& ctx, const Tensor& stacked, const std::vector<Tensor>& numbers);
/// gradient *= factor [] for the gradients of these parameters.
void scale_gradients(Context& ctx, const std::vector<Tensor>& parameters, const Tensor& factor);

/// The norm of each gradient of one dtype, all by one kernel: 0-dim tensors in that dtype.
std::vector<Tensor> foreach_norm(Context& ctx, const std::vector<Tensor>& gradients);

}  // namespace qlp

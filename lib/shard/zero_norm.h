// What DeepSpeed computes of gradients before a step (deepspeed/runtime/zero/stage_1_and_2.py and stage3.py,
// deepspeed/runtime/utils.py, 0.18.3).
#pragma once

#include <vector>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

/// torch.linalg.vector_norm(gradient.double()): a float64 [].
Tensor double_norm(Context& ctx, const Tensor& gradient);
/// The root of the sum of these squares over the ranks: a float32 [] (get_grad_norm_direct).
Tensor join_norms(Context& ctx, const std::vector<Tensor>& norms, const RankGroup& group);
/// Of a list of such norms, one for each group (scaled_global_norm).
Tensor global_norm(Context& ctx, const std::vector<Tensor>& group_norms);
/// _has_inf_or_nan: a float32 [].
Tensor inf_or_nan(Context& ctx, const Tensor& gradient);
struct ZeroClipping {
  double max_norm = 0;  ///< gradient_clipping; 0: any
  double loss_scale = 1;
};
/// Gradients are scaled in place by 1 / (loss scale * max(1, norm / loss scale / max_norm)); `norm`: of the gradients
/// as they are (unscale_and_clip_grads).
void unscale_and_clip(Context& ctx, const Tensor& gradient, const Tensor& norm, const ZeroClipping& clipping);
/// The same with a norm that is a number of the process.
void unscale_and_clip_by_number(Context& ctx, const Tensor& gradient, double norm, const ZeroClipping& clipping);

}  // namespace qlp

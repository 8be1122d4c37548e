// Norms of gradients as DeepSpeed takes them: in double precision (deepspeed/runtime/zero/stage3.py, 0.18.3).
#pragma once

#include <vector>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

/// get_grad_norm_direct: of these gradients together, summed over the ranks.
Tensor direct_norm(Context& ctx, const std::vector<Tensor>& gradients, const RankGroup& group);
/// _constant_buffered_norm2: of one gradient, in pieces.
Tensor buffered_norm(Context& ctx, const Tensor& gradient);
/// complete_grad_norm_calculation_for_cpu_offload: of gradients whose norms are known, summed over the ranks, as a
/// number of the process; 0 on the dry device.
double total_of_norms(Context& ctx, const std::vector<Tensor>& norms, const RankGroup& group);

}  // namespace qlp

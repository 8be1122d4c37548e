// How the fused kernels are called.
#pragma once

#include <cmath>

#include "tensor/compute.h"

namespace qlp {

/// `scale` of 0: one over the root of the width of a head. What a mask leaves out need not be left out twice.
inline AttentionOptions attention_options(const Tensor& q, const Tensor& mask, double scale, std::int64_t window = 0) {
  return {.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size(3))),
          .causal = !mask.defined(),
          .window = window};
}

}  // namespace qlp

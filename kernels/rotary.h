// Rotary embedding in one kernel.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// x [B, heads, S, D] * cos + rotate_half(x) * sin, in place; cos and sin have the sizes of x (strides of 0 where they
/// repeat). `inverse`: the gradient of that.
cudaError_t rotate_in_place(const View& x, const View& cos, const View& sin, bool inverse, cudaStream_t stream);

}  // namespace qlp::kernels

// The middle of a gated MLP (SwiGLU, GeGLU) in one kernel. All views have the same sizes.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// out = silu(gate) * up, or gelu_tanh(gate) * up.
cudaError_t gated_product(View out, View gate, View up, bool gelu, cudaStream_t stream);
/// gate and up become their gradients.
cudaError_t gated_product_backward(View gate, View up, View grad, bool gelu, cudaStream_t stream);

}  // namespace qlp::kernels

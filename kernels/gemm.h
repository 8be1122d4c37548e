// Matrix products of any layout and type: what cuBLASLt does not take.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// out [B, M, N] = alpha * a [B, M, K] x b [B, K, N] + beta * out; sums in float32, of int8 in int32. With beta 0, out
/// is not read.
cudaError_t gemm(const View& out, const View& a, const View& b, double alpha, double beta, cudaStream_t stream);

}  // namespace qlp::kernels

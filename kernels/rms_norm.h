// RMSNorm with its gain in one kernel, and its gradients.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// out = x [rows, width] * rstd * (gain + offset); rstd [rows] float32 = 1 / sqrt(mean(x^2) + eps).
cudaError_t rms_norm(const View& out, float* rstd, const View& x, const View& gain, double eps, double offset,
                     cudaStream_t stream);

/// dx may be `grad` itself; `dgain` [width] is left out where it has no data.
cudaError_t rms_norm_backward(const View& dx, const View& dgain, const View& grad, const View& x, const View& gain,
                              const float* rstd, double offset, cudaStream_t stream);

}  // namespace qlp::kernels

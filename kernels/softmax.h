// Softmax and its logarithm over the last dimension.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

cudaError_t softmax(const View& out, const View& x, bool log, cudaStream_t stream);
/// From the gradient of the result and the result y.
cudaError_t softmax_backward(const View& out, const View& grad, const View& y, bool log, cudaStream_t stream);

}  // namespace qlp::kernels

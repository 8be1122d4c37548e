// The loss of a language model and its gradient. Labels are int64; negative ones do not count.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// loss [] = -sum of log_probabilities [n, v] at labels [n], over their number if `mean`; total_weight [] = that
/// number.
cudaError_t nll_loss(const View& loss, const View& total_weight, const View& log_probabilities, const View& labels,
                     bool mean, cudaStream_t stream);
/// All of out [n, v] is written.
cudaError_t nll_loss_backward(const View& out, const View& grad, const View& labels, const View& total_weight,
                              bool mean, cudaStream_t stream);

/// losses [n] = cross entropy of logits [n, v] at labels [n]; the logits become its gradient.
cudaError_t cross_entropy_in_place(const View& losses, const View& logits, const View& labels, cudaStream_t stream);

}  // namespace qlp::kernels

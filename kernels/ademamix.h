// AdEMAMix on one parameter, as bitsandbytes has it. Arrays lie densely.
#pragma once

#include "averages.h"

namespace qlp::kernels {

struct AdEmaMixNumbers {
  double lr, beta1, beta2, beta3, alpha, eps, weight_decay;
  std::int64_t step;  ///< from 1
};

/// `fast` and `slow` averages of gradients, and one of their squares.
cudaError_t ademamix(const View& parameter, const View& grad, const Average& fast, const Average& slow,
                     const Average& squares, std::int64_t blocksize, const AdEmaMixNumbers& numbers,
                     cudaStream_t stream);

}  // namespace qlp::kernels

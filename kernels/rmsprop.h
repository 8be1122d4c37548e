// RMSprop without momentum on one parameter, as bitsandbytes has it. Arrays lie densely.
#pragma once

#include "averages.h"

namespace qlp::kernels {

struct RmsPropNumbers {
  double lr, alpha, eps, weight_decay;
};

cudaError_t rmsprop(const View& parameter, const View& grad, const Average& square_avg, std::int64_t blocksize,
                    const RmsPropNumbers& numbers, cudaStream_t stream);

}  // namespace qlp::kernels

// Lion on one parameter, as bitsandbytes has it. Arrays lie densely.
#pragma once

#include "averages.h"

namespace qlp::kernels {

struct LionNumbers {
  double lr, beta1, beta2, weight_decay;
};

cudaError_t lion(const View& parameter, const View& grad, const Average& exp_avg, std::int64_t blocksize,
                 const LionNumbers& numbers, cudaStream_t stream);

}  // namespace qlp::kernels

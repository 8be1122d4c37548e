// AdamW on one parameter. Arrays lie densely; moments have types of their own.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

struct AdamWNumbers {
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;  ///< from 1
};

cudaError_t adamw(const View& parameter, const View& grad, const View& exp_avg, const View& exp_avg_sq,
                  const AdamWNumbers& numbers, cudaStream_t stream);

/// A moment as codes of a table of 256 values, over the greatest absolute value of each block.
struct QuantizedMoment {
  std::uint8_t* codes;
  float* absmax;
  const float* code;
};

/// Moments are requantized block by block (bitsandbytes csrc/kernels.cu, kOptimizerStatic8bit2StateBlockwise); the
/// code of the first is signed, that of the second is not. blocksize: at most 2048.
cudaError_t adamw_8bit(const View& parameter, const View& grad, const QuantizedMoment& exp_avg,
                       const QuantizedMoment& exp_avg_sq, std::int64_t blocksize, const AdamWNumbers& numbers,
                       cudaStream_t stream);

}  // namespace qlp::kernels

// AdamW on one parameter whose moments are codes of 4 bits, two in a byte, the first in the high half (torchao
// optim/subclass_4bit.py, quant_utils.py). Arrays lie densely.
#pragma once

#include "adamw.h"

namespace qlp::kernels {

/// Codes of a table of 16 ascending values, over the greatest absolute value of each block.
struct PackedMoment {
  std::uint8_t* codes;
  float* absmax;
  const float* code;
};

/// blocksize: an even number, of which the parameter's elements are a multiple.
cudaError_t adamw_4bit(const View& parameter, const View& grad, const PackedMoment& exp_avg,
                       const PackedMoment& exp_avg_sq, std::int64_t blocksize, const AdamWNumbers& numbers,
                       cudaStream_t stream);

}  // namespace qlp::kernels

// The nearest of 256 ascending values (bitsandbytes csrc/kernels.cu, dQuantize).
#pragma once

#include <cuda_runtime.h>

namespace qlp::kernels {

/// For x in [-1, 1]. A search that halves its steps finds a neighbour; the middle to the other one decides.
__device__ inline int nearest_code(const float* code, float x) {
  int pivot = 127, above = 255, below = 0;
  for (int step = 64; step > 0; step /= 2) {
    if (x > code[pivot]) {
      below = pivot, pivot += step;
    } else {
      above = pivot, pivot -= step;
    }
  }
  if (x > code[pivot]) return x > (code[above] + code[pivot]) * 0.5F ? above : pivot;
  return x < (code[below] + code[pivot]) * 0.5F ? below : pivot;
}

}  // namespace qlp::kernels

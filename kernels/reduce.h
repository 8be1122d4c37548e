// Sums and maxima over some dimensions.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

enum class Reduce : std::uint8_t { sum, sum_of_squares, max, max_abs };

/// Numbers of scratch memory, float32, that a reduction may write.
inline constexpr std::int64_t kReduceScratch = 1024;

/// Over the dimensions in which the result, of the same rank, has size 1; times a number. The same every time: nothing
/// depends on which block comes first.
cudaError_t reduce(Reduce op, const View& out, const View& x, double factor, float* scratch, cudaStream_t stream);

}  // namespace qlp::kernels

// Matrix products of groups of rows, each with its own matrix, whose ends only the device knows: the experts of a
// layer.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// Rows of a [S, K], in groups that end at ends [e], each with its matrix of b [e, K, N]: out [S, N]; sums in float32.
cudaError_t grouped_gemm(const View& out, const View& a, const View& b, const std::int32_t* ends, cudaStream_t stream);
/// out [e, M, N]: for each group the transpose of its rows of a [S, M] times those of b [S, N]; zero for no rows.
cudaError_t grouped_outer(const View& out, const View& a, const View& b, const std::int32_t* ends, cudaStream_t stream);

}  // namespace qlp::kernels

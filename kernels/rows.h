// Rows of a table by their numbers: the embedding and its gradient.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// out [n, ..] = table [index [n], ..].
cudaError_t gather_rows(const View& out, const View& table, const std::int64_t* index, cudaStream_t stream);

/// out [index [n], ..] += rows [n, ..], summed in float32 in the order of n, so the same every time.
cudaError_t scatter_add_rows(const View& out, const View& rows, const std::int64_t* index, cudaStream_t stream);

}  // namespace qlp::kernels

// Which tokens go to which expert: the greatest of each row, sorted pairs, and where each expert's begin.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// values and indices [.., k] of int64: the greatest of each row of x [.., n], greatest first; of equal ones the first.
cudaError_t topk(const View& values, const View& indices, const View& x, cudaStream_t stream);
/// out [.., k] = x [.., n] at indices [.., k].
cudaError_t gather_last(const View& out, const View& x, const View& indices, cudaStream_t stream);
/// out [.., n] = 0, but values [.., k] at indices [.., k].
cudaError_t scatter_last(const View& out, const View& values, const View& indices, cudaStream_t stream);

/// out [m, 1] = x [t, k] at rows [m] and columns [m].
cudaError_t gather_elements(const View& out, const View& x, const std::int64_t* rows, const std::int64_t* columns,
                            cudaStream_t stream);
/// out [t, k] = 0, but values [m, 1] at rows [m] and columns [m], of which no pair comes twice.
cudaError_t put_elements(const View& out, const View& values, const std::int64_t* rows, const std::int64_t* columns,
                         cudaStream_t stream);

/// values [n] ascending, and where in x [n] they were; equal ones stay in their order. Each finds its place by counting
/// those that go before it: no memory beside, and n squared comparisons.
cudaError_t sort(std::int64_t* values, std::int64_t* order, const std::int64_t* x, std::int64_t n, cudaStream_t stream);
/// out [n] = x / divisor, without what is left over.
cudaError_t divide(std::int64_t* out, const std::int64_t* x, std::int64_t divisor, std::int64_t n, cudaStream_t stream);
/// counts and ends [e]: how many of the ascending keys [n] are 0, 1, ..., and where each kind ends.
cudaError_t count_groups(std::int32_t* counts, std::int32_t* ends, const std::int32_t* keys, std::int64_t n,
                         std::int64_t groups, cudaStream_t stream);

}  // namespace qlp::kernels

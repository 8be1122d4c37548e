// Arrays whose elements depend on their places alone.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

cudaError_t fill(View out, double value, cudaStream_t stream);
/// start, start + 1, ...
cudaError_t arange(View out, double start, cudaStream_t stream);
/// Over the last two dimensions: `inside` where j <= i and, if there is a window, i - j < window; else `outside`.
cudaError_t causal_band(View out, std::int64_t window, double inside, double outside, cudaStream_t stream);
/// low + (high - low) * random_unit(key, first + i), i in row-major order.
cudaError_t random_uniform(View out, std::uint64_t key, std::uint64_t first, double low, double high,
                           cudaStream_t stream);
/// 1 where random_unit(key, first + i) < probability, else 0.
cudaError_t bernoulli(View out, std::uint64_t key, std::uint64_t first, double probability, cudaStream_t stream);

}  // namespace qlp::kernels

// Records of arithmetic: kernels that multiply, and the least that the step reads from and writes to the GPU's memory.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace qlp {

/// A product of matrices [m, k] and [k, n] of `dtype`: 2 m n k operations.
void multiply(Context& ctx, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype);

/// Bytes are read from, or written to, the memory of the GPU.
void touch(Context& ctx, std::uint64_t bytes);
/// The same for a tensor; one on the host is left out.
void touch(Context& ctx, const Tensor& tensor);
/// The same for an operand of a product, if it holds weights: what else a product reads may still be in the cache.
void touch_weight(Context& ctx, const Tensor& operand);

}  // namespace qlp

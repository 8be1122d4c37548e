// Weights in MXFP4 that are dequantized on the GPU while they are read (transformers integrations/mxfp4.py).
#pragma once

#include "plan/load_behaviour.h"
#include "tensor/context.h"

namespace qlp {

/// Bytes of `numel` numbers in a file: two in a byte, and a scale of one byte for each 32.
constexpr std::int64_t mxfp4_bytes(std::int64_t numel) { return numel / 2 + numel / 32; }

/// A stack of matrices of this shape in `dtype`, with what making it takes on the way.
Tensor dequantized_mxfp4(Context& ctx, const Shape& shape, DType dtype, Loader loader);

}  // namespace qlp

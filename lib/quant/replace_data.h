// tensor.data = tensor.data.to(dtype)
#pragma once

#include "tensor/context.h"

namespace qlp {

/// Gives the tensor another storage, of the dtype, with the same values. Nothing where it has the dtype or is
/// undefined.
void replace_data(Context& ctx, const Tensor& tensor, DType dtype);

}  // namespace qlp

// tensor.to(dtype) where no gradient is recorded.
#pragma once

#include "tensor/context.h"

namespace qlp {

/// The tensor itself where it has that dtype, else a copy.
Tensor cast(Context& ctx, const Tensor& tensor, DType dtype);

}  // namespace qlp

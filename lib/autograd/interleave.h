// Elements of the last dimension that alternate, taken apart and put together again.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// a[..., first::2] of an even last dimension: a view; the gradient is padded with zeros to the full size.
Tensor every_other(Context& ctx, const Tensor& a, std::int64_t first);
/// torch.stack((a, b), dim=-1).flatten(-2)
Tensor interleave(Context& ctx, const Tensor& a, const Tensor& b);

}  // namespace qlp

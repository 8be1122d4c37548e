#include "tensor/cast.h"

#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

Tensor cast(Context& ctx, const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = empty_like(ctx, tensor, dtype, Op::to_copy);
  copy_into(ctx, out, tensor);
  return out;
}

}  // namespace qlp

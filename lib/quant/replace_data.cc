#include "quant/replace_data.h"

#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

void replace_data(Context& ctx, const Tensor& tensor, DType dtype) {
  if (ctx.abandoned || !tensor.defined() || tensor.dtype() == dtype) return;
  const Scoped category(ctx.category, tensor.storage().label().category);
  const Tensor cast = empty_like(ctx, tensor, dtype, Op::to_copy);
  copy_into(ctx, cast, tensor);
  tensor.impl()->storage = cast.impl()->storage;
  tensor.impl()->dtype = dtype, tensor.impl()->offset = 0;
}

}  // namespace qlp

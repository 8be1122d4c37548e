#include "nn/token_delta.h"

#include "autograd/indexing.h"
#include "autograd/pointwise.h"

namespace qlp {

Tensor TokenDelta::merged(Context& ctx, const Tensor& table) const {
  return copy_rows(ctx, table, tokens_, to(ctx, rows_->tensor, table.dtype()));
}

}  // namespace qlp

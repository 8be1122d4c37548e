#include "tensor/arithmetic.h"

namespace qlp {

void multiply(Context& ctx, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  if (ctx.abandoned) return;
  ctx.device.work().operations[static_cast<std::size_t>(dtype)] +=
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

void touch(Context& ctx, std::uint64_t bytes) {
  if (!ctx.abandoned) ctx.device.work().memory_bytes += bytes;
}

void touch(Context& ctx, const Tensor& tensor) {
  if (!tensor.on_host()) touch(ctx, bytes_of(tensor.shape(), tensor.dtype()).count());
}

void touch_weight(Context& ctx, const Tensor& operand) {
  switch (operand.storage().label().category) {
    case Category::parameters:
    case Category::adapter:
    case Category::gathered_weights:
      return touch(ctx, operand);
    default:
      return;
  }
}

}  // namespace qlp

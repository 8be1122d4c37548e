#include "autograd/attention.h"

#include <limits>

#include "autograd/autocast.h"
#include "autograd/pointwise.h"
#include "tensor/arithmetic.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();  // what is added to scores that do not count

/// convert_boolean_attn_mask in ATen/native/transformers/attention.cpp.
Tensor additive(Context& ctx, const Tensor& mask, DType dtype, const AttentionBehaviour& behaviour) {
  if (mask.dtype() != DType::boolean) return mask;
  if (!behaviour.converts_mask_by_where) {
    Tensor zeros = empty(ctx, mask.shape(), dtype, Op::zeros);
    scratch(ctx, bytes_of(mask.shape(), DType::boolean).count(), Op::ne);
    compute(ctx, Unary::select, zeros, mask, 0, kHidden);
    return zeros;
  }
  const Tensor zero = empty(ctx, {}, dtype, Op::where);
  const Tensor infinity = empty(ctx, {}, dtype, Op::where);
  Tensor bias = empty(ctx, mask.shape(), dtype, Op::where);
  compute(ctx, Unary::select, bias, mask, 0, kHidden);
  return bias;
}

/// preprocess_mask in the same file: where rows do not start at a multiple of 8 elements, they are copied and padded to
/// the next one, even if they are that long.
Tensor aligned(Context& ctx, const Tensor& mask) {
  constexpr std::int64_t kAlignment = 8;
  const std::int64_t columns = mask.size(-1), row_stride = mask.strides()[2];
  if (columns % kAlignment == 0 && row_stride % kAlignment == 0) return mask;
  Tensor padded = empty(ctx, mask.shape().with(-1, columns + kAlignment - columns % kAlignment), mask.dtype(), Op::pad);
  if (ctx.kernels(padded)) copy_into(ctx, padded.narrow(-1, 0, columns), mask);
  return padded;
}

}  // namespace

void multiply_pairs(Context& ctx, const Tensor& q, std::int64_t pairs, int products) {
  multiply(ctx, q.size(0) * q.size(1) * products, pairs, q.size(3), q.dtype());
}

Tensor scaled_dot_product_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                    const AttentionBehaviour& behaviour, double scale) {
  // C++ evaluates the casts of the arguments from the last to the first.
  Tensor bias = autocast_low(ctx, mask);
  const Tensor value = autocast_low(ctx, v);
  const Tensor key = autocast_low(ctx, k);
  const Tensor query = autocast_low(ctx, q);
  if (bias.defined()) {
    bias = additive(ctx, bias, query.dtype(), behaviour);
    bias = aligned(ctx, bias);
    return efficient_attention(ctx, query, key, value, bias, behaviour, scale);
  }
  if (query.dtype() != DType::float32) return flash_attention(ctx, query, key, value, behaviour, 0, scale);
  if (query.size(1) != key.size(1) && !behaviour.efficient_groups_heads)
    return math_attention(ctx, query, key, value, scale);
  return efficient_attention(ctx, query, key, value, {}, behaviour, scale);
}

}  // namespace qlp

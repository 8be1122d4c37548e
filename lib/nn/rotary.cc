#include "nn/rotary.h"

#include <utility>

#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// torch.cat((-x2, x1), dim=-1)
Tensor rotate_half(Context& ctx, const Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  const Tensor x1 = slice(ctx, x, -1, half);
  const Tensor x2 = slice(ctx, x, -1, half);
  const Tensor negated = neg(ctx, x2);
  return cat(ctx, negated, x1, -1);
}

/// x * cos + rotate_half(x) * sin
Tensor rotate(Context& ctx, const Tensor& x, const RotaryTables& tables) {
  const Tensor straight = mul(ctx, x, tables.cos);
  Tensor turned = rotate_half(ctx, x);
  turned = mul(ctx, turned, tables.sin);
  return add(ctx, straight, turned);
}


}  // namespace

RotaryEmbedding::RotaryEmbedding(std::string name, std::int64_t width)
    : Module(ModuleKind::rotary, std::move(name)), width_(width) {}

RotaryTables RotaryEmbedding::forward(Context& ctx, const Tensor& like, const Tensor& positions) {
  const Scoped name(ctx.module, label());
  const Scoped grad_mode(ctx.grad_enabled, false);
  const std::int64_t rows = positions.size(-1);
  const Tensor frequencies = to(ctx, inv_freq_, DType::float32);  // a copy where FSDP1 has cast the buffer
  const Tensor places = to(ctx, positions, DType::float32);
  const Tensor angles = gemm(ctx, {1, width_ / 2, rows}, DType::float32, Op::bmm);
  const Tensor both = empty(ctx, {1, rows, width_}, DType::float32, Op::cat);
  Tensor cos = scale(ctx, both, Op::cos);
  cos = scale(ctx, cos);
  Tensor sin = scale(ctx, both, Op::sin);
  sin = scale(ctx, sin);
  // The casts are arguments of one return: the float32 tables outlive both.
  return {to(ctx, cos, like.dtype()), to(ctx, sin, like.dtype())};
}

Rotated apply_rotary(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables) {
  const RotaryTables wide{tables.cos.view({1, 1, tables.cos.size(1), tables.cos.size(2)}),
                          tables.sin.view({1, 1, tables.sin.size(1), tables.sin.size(2)})};
  Tensor turned_q = rotate(ctx, q, wide);
  Tensor turned_k = rotate(ctx, k, wide);
  return {std::move(turned_q), std::move(turned_k)};
}

}  // namespace qlp

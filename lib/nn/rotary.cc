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

/// The rotated part of a head, joined with what is not rotated.
Tensor rotate_part(Context& ctx, const Tensor& x, const RotaryTables& tables) {
  const std::int64_t width = tables.cos.size(-1), rest = x.size(-1) - width;
  const Tensor turning = slice(ctx, x, -1, width);
  const Tensor passing = slice(ctx, x, -1, rest);
  return cat(ctx, rotate(ctx, turning, tables), passing, -1);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::string name, std::int64_t width, RotaryStyle style, const ModelBehaviour& behaviour)
    : Module(ModuleKind::rotary, std::move(name)),
      width_(width),
      style_(style),
      by_mul_(behaviour.rotary_by_mul),
      scales_late_(behaviour.rotary_scales_late) {}

RotaryTables RotaryEmbedding::forward(Context& ctx, const Tensor& like, const Tensor& positions) {
  const Scoped name(ctx.module, label());
  const Scoped grad_mode(ctx.grad_enabled, false);
  const std::int64_t rows = positions.size(-1);
  Tensor angles, places;
  if (by_mul_) {
    places = to(ctx, positions, DType::float32);
    const Tensor frequencies = to(ctx, inv_freq_, DType::float32);  // a copy where FSDP1 has cast the buffer
    angles = empty(ctx, {1, rows, width_ / 2}, DType::float32, Op::mul);
    places.reset();
  }
  const Tensor frequencies = by_mul_ ? Tensor() : to(ctx, inv_freq_, DType::float32);
  if (!by_mul_) {
    places = to(ctx, positions, DType::float32);
    angles = gemm(ctx, {1, width_ / 2, rows}, DType::float32, Op::bmm);
  }
  Tensor both = empty(ctx, {1, rows, width_}, DType::float32, Op::cat);
  Tensor cos = scale(ctx, both, Op::cos);
  if (!scales_late_) cos = scale(ctx, cos);
  Tensor sin = scale(ctx, both, Op::sin);
  if (scales_late_) cos = scale(ctx, cos);
  sin = scale(ctx, sin);
  const DType dtype = style_.float_tables ? DType::float32 : like.dtype();
  RotaryTables tables{to(ctx, cos, dtype), to(ctx, sin, dtype), style_.float_tables, style_.joins_rest};
  places.reset(), angles.reset(), both.reset(), cos.reset(), sin.reset();  // as Python drops its locals
  return tables;
}

Rotated apply_rotary(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables) {
  const RotaryTables wide{tables.cos.view({1, 1, tables.cos.size(1), tables.cos.size(2)}),
                          tables.sin.view({1, 1, tables.sin.size(1), tables.sin.size(2)})};
  const auto turn = tables.joins_rest ? rotate_part : rotate;
  Tensor turned_q = turn(ctx, q, wide);
  Tensor turned_k = turn(ctx, k, wide);
  if (!tables.casts_back) return {std::move(turned_q), std::move(turned_k)};
  return {to(ctx, turned_q, q.dtype()), to(ctx, turned_k, k.dtype())};
}

}  // namespace qlp

#include "nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/interleave.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "nn/liger.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// torch.cat((-x2, x1), dim=-1) of halves, torch.stack((-x2, x1), dim=-1).flatten(-2) of neighbours
Tensor rotate_half(Context& ctx, const Tensor& x, RotaryPairs pairs) {
  const std::int64_t half = x.size(-1) / 2;
  const bool apart = pairs != RotaryPairs::halves;
  const Tensor x1 = apart ? every_other(ctx, x, 0) : slice(ctx, x, -1, 0, half);
  const Tensor x2 = apart ? every_other(ctx, x, 1) : slice(ctx, x, -1, half, half);
  const Tensor negated = neg(ctx, x2);
  return apart ? interleave(ctx, negated, x1) : cat(ctx, negated, x1, -1);
}

/// first * cos - second * sin, and second * cos + first * sin (modeling_gpt_oss.py, _apply_rotary_emb)
Tensor rotate_halves(Context& ctx, const Tensor& x, const RotaryTables& tables) {
  const std::int64_t half = x.size(-1) / 2;
  const auto halves = split(ctx, x, {half, half}, -1);
  const auto turned = [&](const Tensor& a, const Tensor& b, bool adds) {
    const Tensor straight = mul(ctx, a, tables.cos), crossed = mul(ctx, b, tables.sin);
    return adds ? add(ctx, straight, crossed) : sub(ctx, straight, crossed);
  };
  const Tensor first = turned(halves[0], halves[1], false);
  const Tensor second = turned(halves[1], halves[0], true);
  return cat(ctx, first, second, -1);
}

/// x * cos + rotate_half(x) * sin
Tensor rotate(Context& ctx, const Tensor& x, const RotaryTables& tables) {
  if (tables.style.pairs == RotaryPairs::halves_by_half_tables) return rotate_halves(ctx, x, tables);
  const Tensor straight = mul(ctx, x, tables.cos);
  Tensor turned = rotate_half(ctx, x, tables.style.pairs);
  turned = mul(ctx, turned, tables.sin);
  return add(ctx, straight, turned);
}

/// table[..., : width / 2].repeat_interleave(2, dim=-1)
Tensor doubled_half(Context& ctx, const Tensor& table) {
  Tensor out = empty(ctx, table.shape(), table.dtype(), Op::clone);
  if (!ctx.kernels(out)) return out;
  const std::int64_t half = table.size(-1) / 2, elements = table.numel() / 2;
  const Tensor first = table.narrow(3, 0, half);
  for (const std::int64_t place : {0, 1}) {
    const Tensor places = out.strided({elements / half, half}, {2 * half, 2}, place);
    copy_elements(ctx, places, first.strided({elements / half, half}, {2 * half, 1}));
  }
  return out;
}

/// cos and sin [1 or batch, 1, rows, width]
RotaryTables over_heads(Context& ctx, const RotaryTables& tables, std::int64_t rows) {
  const Shape shape{tables.picks_rows ? 1 : tables.cos.size(0), 1, rows, tables.cos.size(-1)};
  RotaryTables wide;
  if (tables.picks_rows) {  // cos[position_ids]
    wide.cos = empty(ctx, shape, tables.cos.dtype(), Op::index_select);
    wide.sin = empty(ctx, shape, tables.sin.dtype(), Op::index_select);
    if (ctx.kernels(wide.cos)) {  // positions count from 0
      copy_elements(ctx, wide.cos, tables.cos.narrow(0, 0, rows));
      copy_elements(ctx, wide.sin, tables.sin.narrow(0, 0, rows));
    }
  } else {
    wide.cos = tables.cos.view(shape), wide.sin = tables.sin.view(shape);
  }
  wide.style = tables.style;
  if (tables.style.pairs == RotaryPairs::neighbours_of_halves) {
    wide.cos = doubled_half(ctx, wide.cos);
    wide.sin = doubled_half(ctx, wide.sin);
  }
  return wide;
}

/// One more than the largest position; of ranks that share sequences that differs.
std::int64_t length_of(Context& ctx, const Tensor& positions) {
  Kernels* const kernels = ctx.kernels(positions);
  if (!kernels || !ctx.device.compute().answers) return positions.size(-1);
  std::vector<std::int64_t> places(static_cast<std::size_t>(positions.numel()));
  kernels->download(ctx.stream, places.data(), positions.data(), places.size() * sizeof(std::int64_t));
  return *std::max_element(places.begin(), places.end()) + 1;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::string name, const RotaryShape& shape, RotaryStyle style,
                                 const ModelBehaviour& behaviour)
    : Module(ModuleKind::rotary, std::move(name)),
      shape_(shape),
      style_(style),
      behaviour_(behaviour.rotary),
      attention_scaling_(attention_scaling(shape.base())),
      by_mul_(behaviour.rotary_by_mul),
      scales_late_(behaviour.rotary_scales_late),
      liger_(behaviour.liger.has_value()) {}

std::vector<ModuleBuffer> RotaryEmbedding::own_buffers() {
  const Shape frequencies{shape_.width / 2}, table{shape_.positions, shape_.width};
  std::vector<ModuleBuffer> buffers{{&inv_freq_, frequencies}};
  if (behaviour_.keeps_original) buffers.push_back({&original_inv_freq_, frequencies});
  if (behaviour_.keeps_tables) buffers.insert(buffers.end(), {{&cos_, table, true}, {&sin_, table, true}});
  return buffers;
}

void RotaryEmbedding::fill_buffers(Context& ctx) {
  const std::vector<double> frequencies = inverse_frequencies(shape_.base(), 0);
  upload(ctx, inv_freq_, frequencies);
  if (behaviour_.keeps_original) upload(ctx, original_inv_freq_, frequencies);
  if (!behaviour_.keeps_tables || !ctx.kernels(cos_)) return;
  std::vector<double> cos, sin;
  for (std::int64_t position = 0; position < shape_.positions; ++position)
    for (std::int64_t i = 0; i < shape_.width; ++i) {
      const double angle =
          static_cast<double>(position) * frequencies[static_cast<std::size_t>(i % (shape_.width / 2))];
      cos.push_back(std::cos(angle)), sin.push_back(std::sin(angle));
    }
  upload(ctx, cos_, cos), upload(ctx, sin_, sin);
}

/// MistralRotaryEmbedding of transformers 4.39: the last position is looked at on the host.
RotaryTables RotaryEmbedding::kept_tables(Context& ctx, const Tensor& like, std::int64_t rows) const {
  scratch(ctx, size_of(DType::int64), Op::max);
  const auto first = [&](const Tensor& table) { return to(ctx, table.narrow(0, 0, rows + 1), like.dtype()); };
  RotaryTables tables;
  tables.cos = first(cos_), tables.sin = first(sin_);
  tables.picks_rows = true;
  return tables;
}

/// longrope: torch.max(position_ids) + 1 > the length of pretraining (longrope_frequency_update,
/// modeling_rope_utils.py).
void RotaryEmbedding::look_at_length(Context& ctx, const Tensor& positions) {
  Tensor last = empty(ctx, {}, DType::int64, Op::max);
  const Tensor length = empty(ctx, {}, DType::int64, Op::add);
  last.reset();
  if (!behaviour_.keeps_original) scratch(ctx, 1, Op::ne);
  const Shape frequencies{shape_.width / 2};
  if (!picked_inv_freq_.defined()) {
    const Scoped category(ctx.category, Category::parameters);
    picked_inv_freq_ = empty(ctx, frequencies, DType::float32, Op::buffer);
    upload(ctx, picked_inv_freq_, inverse_frequencies(shape_.base(), length_of(ctx, positions)));
  }
  if (!behaviour_.keeps_original) {
    inv_freq_ = picked_inv_freq_;  // register_buffer: in the place of one that FSDP1 or DeepSpeed may have cast
    return;
  }
  // Both sets of frequencies are at hand, and one is picked and copied over the buffer (5.0 on).
  const Tensor longer = empty(ctx, {}, DType::boolean, Op::ne);
  const Tensor picked = empty(ctx, frequencies, DType::float32, Op::where);
  copy_into(ctx, inv_freq_, picked_inv_freq_);
}

RotaryTables RotaryEmbedding::forward(Context& ctx, const Tensor& like, const Tensor& positions) {
  const Scoped name(ctx.module, label());
  const Scoped grad_mode(ctx.grad_enabled, false);
  call(ctx, Tensor(), [](const Tensor& none) { return none; });  // hooks; none of its results wants a gradient
  const std::int64_t batch = positions.size(0), rows = positions.size(-1), width = shape_.width;
  if (behaviour_.place == RotaryPlace::attention_buffers) return kept_tables(ctx, like, rows);
  if (style_.looks_at_length) look_at_length(ctx, positions);
  // dynamic_frequency_update; the numbers that it compares are gone at once.
  if (shape_.scaling.rope_type == RopeStretch::dynamic && !std::exchange(stretched_, true))
    upload(ctx, inv_freq_, inverse_frequencies(shape_.base(), length_of(ctx, positions)));
  Tensor angles, places, frequencies;
  if (by_mul_) {
    places = to(ctx, positions, DType::float32);
    frequencies = to(ctx, inv_freq_, DType::float32);  // a copy where FSDP1 has cast the buffer
    angles = empty(ctx, {batch, rows, width / 2}, DType::float32, Op::mul);
    if (ctx.kernels(angles)) compute(ctx, Binary::mul, angles, places.view({batch, rows, 1}), frequencies);
    frequencies.reset(), places.reset();
  } else {
    frequencies = to(ctx, inv_freq_, DType::float32);
    places = to(ctx, positions, DType::float32);
    const Tensor column = frequencies.view({1, width / 2, 1}), row = places.view({1, 1, rows});
    angles = gemm(ctx, {.tensor = column, .stacked = true}, {.tensor = row, .stacked = true}, DType::float32, Op::bmm);
  }
  Tensor half = by_mul_ ? angles : angles.transpose(1, 2);
  const bool joins = style_.pairs != RotaryPairs::halves_by_half_tables;
  Tensor both = joins ? empty(ctx, {batch, rows, width}, DType::float32, Op::cat) : half;
  if (joins && ctx.kernels(both)) {
    const bool apart = style_.pairs == RotaryPairs::neighbours;
    const std::int64_t step = apart ? 2 : 1;
    for (const std::int64_t start : {std::int64_t{0}, apart ? 1 : width / 2})
      copy_into(ctx, both.strided(half.shape(), {rows * width, width, step}, start), half);
  }
  const bool scales = behaviour_.place == RotaryPlace::decoder;  // attention_scaling came with that
  const auto of_angles = [&](Op as, Unary op) {
    Tensor out = empty(ctx, both.shape(), DType::float32, as);
    compute(ctx, op, out, both);
    return out;
  };
  Tensor cos = of_angles(Op::cos, Unary::cos);
  if (scales && !scales_late_) cos = scale(ctx, cos, attention_scaling_);
  Tensor sin = of_angles(Op::sin, Unary::sin);
  if (scales && scales_late_) cos = scale(ctx, cos, attention_scaling_);
  if (scales) sin = scale(ctx, sin, attention_scaling_);
  const DType dtype = style_.float_tables ? DType::float32 : like.dtype();
  RotaryTables tables{to(ctx, cos, dtype), to(ctx, sin, dtype), style_, liger_};
  frequencies.reset(), places.reset(), half.reset(), angles.reset(), both.reset(), cos.reset(),
      sin.reset();  // as Python drops its locals
  return tables;
}

Rotated apply_rotary(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables) {
  if (tables.liger) return liger_rope(ctx, q, k, tables);
  const RotaryTables wide = over_heads(ctx, tables, q.size(2));
  if (tables.style.joins_rest) {
    const std::int64_t width = wide.cos.size(-1), rest = q.size(-1) - width;
    const auto turning = [&](const Tensor& x) { return rest ? slice(ctx, x, -1, 0, width) : x; };  // x[..., :all] is x
    const Tensor q_turning = turning(q), q_passing = slice(ctx, q, -1, width, rest);
    const Tensor k_turning = turning(k), k_passing = slice(ctx, k, -1, width, rest);
    Tensor turned_q = cat(ctx, rotate(ctx, q_turning, wide), q_passing, -1);
    Tensor turned_k = cat(ctx, rotate(ctx, k_turning, wide), k_passing, -1);
    return {std::move(turned_q), std::move(turned_k)};
  }
  const bool widens = tables.style.turns_in_float;
  const Tensor q_wide = widens ? to(ctx, q, DType::float32) : q;
  const Tensor k_wide = widens ? to(ctx, k, DType::float32) : k;
  Tensor turned_q = rotate(ctx, q_wide, wide);
  Tensor turned_k = rotate(ctx, k_wide, wide);
  if (!tables.style.float_tables && !widens) return {std::move(turned_q), std::move(turned_k)};
  return {to(ctx, turned_q, q.dtype()), to(ctx, turned_k, k.dtype())};
}

}  // namespace qlp

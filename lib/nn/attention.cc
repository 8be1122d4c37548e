#include "nn/attention.h"

#include <utility>

#include "autograd/attention.h"
#include "autograd/indexing.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "autograd/views.h"

namespace qlp {

SelfAttention::SelfAttention(std::string name, const AttentionShape& shape, AttentionProjections projections,
                             const ModelBehaviour& behaviour, std::size_t layer)
    : Module(ModuleKind::attention, std::move(name)),
      shape_(shape),
      projections_(std::move(projections)),
      behaviour_(behaviour),
      layer_(layer) {
  if (shape.sinks) sinks_ = &add_parameter("sinks", ParamRole::sink, {shape.heads});
  // Phi-3 registers o_proj ahead of qkv_proj.
  LinearModule* const last = projections_.qkv ? projections_.qkv.get() : projections_.o.get();
  for (LinearModule* linear : {projections_.q.get(), projections_.k.get(), projections_.v.get(), projections_.o.get()})
    if (linear && linear != last) add_child(*linear);
  add_child(*last);
  for (RmsNorm* norm : {projections_.q_norm.get(), projections_.k_norm.get()})
    if (norm) add_child(*norm);
  if (projections_.rotary) add_child(*projections_.rotary);
}

/// [B, S, heads x D] gives [B, heads, S, D].
Tensor SelfAttention::heads_first(Context& ctx, Tensor x, std::int64_t heads, RmsNorm* norm) const {
  x = reshape(ctx, x, {x.size(0), x.size(1), heads, shape_.head_dim});
  if (norm) x = norm->forward(ctx, x);
  return transpose(ctx, x, 1, 2);
}

/// q, k and v are cut out of one.
SelfAttention::Heads SelfAttention::project_joined(Context& ctx, const Tensor& hidden) {
  Tensor fused = projections_.qkv->forward(ctx, hidden);
  const std::int64_t of_q = shape_.heads * shape_.head_dim, of_kv = shape_.kv_heads * shape_.head_dim;
  const Tensor q = slice(ctx, fused, -1, 0, of_q);
  const Tensor k = slice(ctx, fused, -1, of_q, of_kv);
  const Tensor v = slice(ctx, fused, -1, of_q + of_kv, of_kv);
  Tensor query = heads_first(ctx, q, shape_.heads, nullptr);
  Tensor key = heads_first(ctx, k, shape_.kv_heads, nullptr);
  Tensor value = heads_first(ctx, v, shape_.kv_heads, nullptr);
  return {std::move(fused), std::move(value), std::move(key), std::move(query)};
}

/// q and k are normed before they are heads.
SelfAttention::Heads SelfAttention::project_normed(Context& ctx, const Tensor& hidden) {
  AttentionProjections& p = projections_;
  Tensor q = p.q->forward(ctx, hidden);
  q = p.q_norm->forward(ctx, q);
  Tensor k = p.k->forward(ctx, hidden);
  k = p.k_norm->forward(ctx, k);
  Tensor v = p.v->forward(ctx, hidden);
  q = heads_first(ctx, std::move(q), shape_.heads, nullptr);
  k = heads_first(ctx, std::move(k), shape_.kv_heads, nullptr);
  v = heads_first(ctx, std::move(v), shape_.kv_heads, nullptr);
  return {{}, std::move(v), std::move(k), std::move(q)};
}

SelfAttention::Heads SelfAttention::project(Context& ctx, const Tensor& hidden) {
  AttentionProjections& p = projections_;
  if (p.qkv) return project_joined(ctx, hidden);
  if (p.head_norm == HeadNorm::joined) return project_normed(ctx, hidden);
  const bool at_once = p.head_norm == HeadNorm::each;
  Tensor q = heads_first(ctx, p.q->forward(ctx, hidden), shape_.heads, at_once ? p.q_norm.get() : nullptr);
  Tensor k = heads_first(ctx, p.k->forward(ctx, hidden), shape_.kv_heads, at_once ? p.k_norm.get() : nullptr);
  Tensor v = heads_first(ctx, p.v->forward(ctx, hidden), shape_.kv_heads, nullptr);
  if (p.head_norm == HeadNorm::each_at_last) {
    q = p.q_norm->forward(ctx, q);
    k = p.k_norm->forward(ctx, k);
  }
  return {{}, std::move(v), std::move(k), std::move(q)};
}

Tensor SelfAttention::forward(Context& ctx, const Tensor& input, const LayerInputs& inputs, Tensor& weights) {
  return call(ctx, input, [&](const Tensor& hidden) {
    Heads heads = project(ctx, hidden);
    RotaryTables own;
    if (shape_.turns) rotate(ctx, heads, inputs, own);
    if (inputs.cache) {
      auto& [keys, values] = (*inputs.cache)[layer_];
      if (behaviour_.copies_into_cache) {
        const Tensor none = heads.k.narrow(2, 0, 0);
        heads.k = cat(ctx, none, heads.k, 2);
        heads.v = cat(ctx, none, heads.v, 2);
      }
      keys = heads.k, values = heads.v;
    }
    const Tensor& mask = inputs.mask;
    Tensor out;
    switch (shape_.kernel) {
      case AttentionKernel::eager:
        out = eager(ctx, heads, mask, weights);
        break;
      case AttentionKernel::flash_attention_2:
        out = flash(ctx, heads);
        break;
      case AttentionKernel::sdpa:
        out = sdpa(ctx, heads, mask);
        break;
    }
    out = reshape(ctx, out, {hidden.size(0), hidden.size(1), shape_.heads * shape_.head_dim});
    out = projections_.o->forward(ctx, out);
    return out;
  });
}

void SelfAttention::rotate(Context& ctx, Heads& heads, const LayerInputs& inputs, RotaryTables& own) {
  const bool makes_tables = behaviour_.rotary.place != RotaryPlace::decoder;
  if (makes_tables) own = projections_.rotary->forward(ctx, heads.v, inputs.positions);
  Rotated rotated = apply_rotary(ctx, heads.q, heads.k, makes_tables ? own : inputs.rotary);
  heads.q = std::move(rotated.q), heads.k = std::move(rotated.k);
}

void SelfAttention::repeat_heads(Context& ctx, Heads& heads) const {
  const std::int64_t groups = shape_.heads / shape_.kv_heads;
  const bool slices = behaviour_.attention.full_slices_record;
  heads.k = repeat_kv(ctx, heads.k, groups, slices);
  heads.v = repeat_kv(ctx, heads.v, groups, slices);
}

/// Gives [B, S, heads, D].
Tensor SelfAttention::sdpa(Context& ctx, Heads& heads, const Tensor& mask) {
  Heads copy;
  if (!behaviour_.attention_rebinds) copy = heads;
  Heads& named = behaviour_.attention_rebinds ? heads : copy;
  auto& [fused, v, k, q] = named;
  if (!behaviour_.grouped_attention || mask.defined()) repeat_heads(ctx, named);
  if (behaviour_.contiguous_attention || (behaviour_.attention_rebinds && mask.defined()))
    q = contiguous(ctx, q), k = contiguous(ctx, k), v = contiguous(ctx, v);
  Tensor out = shape_.ring.ranks > 1
                   ? ring_attention(ctx, q, k, v, shape_.ring, behaviour_.attention)
                   : scaled_dot_product_attention(ctx, q, k, v, mask, behaviour_.attention, shape_.scale);
  out = transpose(ctx, out, 1, 2);
  return contiguous(ctx, out);
}

/// Gives [B, S, heads, D]. transformers casts float32 itself (modeling_flash_attention_utils.py).
Tensor SelfAttention::flash(Context& ctx, Heads& heads) {
  Heads copy;
  if (!behaviour_.attention_rebinds) copy = heads;
  Heads& named = behaviour_.attention_rebinds ? heads : copy;
  auto& [fused, v, k, q] = named;
  if (behaviour_.flash_repeats_heads) repeat_heads(ctx, named);
  const DType dtype = q.dtype() == DType::float32 ? ctx.autocast.dtype : q.dtype();
  q = to(ctx, q, dtype), k = to(ctx, k, dtype), v = to(ctx, v, dtype);
  return transpose(ctx, flash_attention(ctx, q, k, v, behaviour_.attention, shape_.window, shape_.scale), 1, 2);
}

/// softmax over scores [B, heads, S, S] and the sinks beside them, without the sinks (modeling_gpt_oss.py).
Tensor SelfAttention::with_sinks(Context& ctx, const Tensor& scores, Tensor& combined) {
  {
    const Tensor of_heads = reshape(ctx, sinks_->tensor, {1, shape_.heads, 1, 1});
    combined = cat(ctx, scores, expand(ctx, of_heads, scores.shape().with(-1, 1)), -1);
  }
  {
    const Tensor largest = max_last(ctx, combined);
    combined = sub(ctx, combined, largest);
  }
  return slice(ctx, softmax(ctx, combined, combined.dtype()), -1, 0, scores.size(-1));
}

/// Gives [B, S, heads, D].
Tensor SelfAttention::eager(Context& ctx, Heads& heads, const Tensor& mask, Tensor& weights) {
  Heads copy;
  if (!behaviour_.attention_rebinds) copy = heads;
  Heads& named = behaviour_.attention_rebinds ? heads : copy;
  auto& [fused, v, k, q] = named;
  repeat_heads(ctx, named);
  weights = batched_matmul(ctx, q, transpose(ctx, k, 2, 3));
  weights = scale(ctx, weights, shape_.scale);
  if (shape_.softcap != 0) {
    weights = scale(ctx, weights, 1 / shape_.softcap, Op::div);
    weights = tanh(ctx, weights);
    weights = scale(ctx, weights, shape_.softcap);
  }
  if (mask.defined()) weights = add(ctx, weights, mask);
  Tensor combined;  // Python's name lives as long as the function runs
  Tensor probabilities = sinks_ ? with_sinks(ctx, weights, combined) : softmax(ctx, weights, DType::float32);
  probabilities = to(ctx, probabilities, q.dtype());
  weights = std::move(probabilities);
  Tensor out = batched_matmul(ctx, weights, v);
  out = transpose(ctx, out, 1, 2);
  return contiguous(ctx, out);
}

}  // namespace qlp

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/attention.h"
#include "autograd/attention_options.h"
#include "autograd/flash_kernel.h"
#include "autograd/record.h"
#include "base/rounding.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Head widths that the kernels are made for (flash_api.cpp, head_size_rounded).
std::int64_t padded_width(std::int64_t width) { return width <= 192 ? round_up(width, 32) : 256; }

/// Into how many parts the keys are split when there are too few blocks of queries to fill the GPU: the first number
/// that comes within 15 % of the best use of whole waves (flash_api.cpp, num_splits_heuristic).
std::int64_t key_splits(std::int64_t blocks, std::int64_t slots, std::int64_t key_blocks) {
  if (static_cast<float>(blocks) >= 0.8F * static_cast<float>(slots)) return 1;
  const std::int64_t most = std::min<std::int64_t>({128, slots, key_blocks});
  const auto changes_nothing = [&](std::int64_t n) {
    return n > 1 && ceil_div(key_blocks, n) == ceil_div(key_blocks, n - 1);
  };
  std::vector<float> efficiency;
  float best = 0.0F;
  for (std::int64_t n = 1; n <= most; ++n) {
    const float waves = static_cast<float>(blocks * n) / static_cast<float>(slots);
    efficiency.push_back(changes_nothing(n) ? 0.0F : waves / std::ceil(waves));
    best = std::max(best, efficiency.back());
  }
  for (std::int64_t n = 1; n <= most; ++n)
    if (!changes_nothing(n) && efficiency[static_cast<std::size_t>(n - 1)] >= 0.85F * best) return n;
  return 1;
}

/// Pairs of a query and a key that the kernel looks at.
std::int64_t pairs_of(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  return options.causal ? causal_pairs(q.size(2), options.window) : q.size(2) * k.size(2);
}

struct FlashBackward final : FlashNode {
  using FlashNode::FlashNode;
  AttentionOptions options;
  Grads backward(Context& ctx, Grads& grads) override {
    const Saved saved = unpack(ctx);
    Grads result = flash_backward(ctx, grads[0], saved.q, saved.k, saved.v, saved.output, options);
    drop_unwanted(*this, result);
    return result;
  }
};

}  // namespace

void FlashNode::save_operands(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
  k_.save(ctx, k), q_.save(ctx, q), v_.save(ctx, v);
}

void FlashNode::save_output(Context& ctx, const FlashOutput& output) {
  lse_.save_result(ctx, output.lse), out_.save_result(ctx, output.out);
  if (output.seed.defined()) offset_.save_result(ctx, output.offset), seed_.save_result(ctx, output.seed);
}

FlashNode::Saved FlashNode::unpack(Context& ctx) const {
  Saved saved;
  saved.q = q_.unpack(ctx), saved.k = k_.unpack(ctx), saved.v = v_.unpack(ctx);
  saved.output.out = out_.unpack(ctx), saved.output.lse = lse_.unpack(ctx);
  if (seed_.saved()) saved.output.seed = seed_.unpack(ctx);
  if (offset_.saved()) saved.output.offset = offset_.unpack(ctx);
  return saved;
}

void FlashNode::release() {
  k_.release(), q_.release(), v_.release(), lse_.release(), out_.release(), seed_.release(), offset_.release();
}

Grads flash_backward(Context& ctx, const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                     const FlashOutput& forward, const AttentionOptions& options) {
  const std::int64_t batch = q.size(0), heads = q.size(1), kv_heads = k.size(1), rows = q.size(2);
  const std::int64_t columns = k.size(2), width = q.size(3);
  Grads result(3);
  {
    const Tensor laid = grad_out.transpose(1, 2);
    const Tensor grad = laid.contiguous() ? laid : empty(ctx, laid.shape(), laid.dtype(), Op::contiguous);
    if (!laid.contiguous()) copy_into(ctx, grad, laid);
    const Tensor out_laid = forward.out.transpose(1, 2);
    const Tensor output =
        out_laid.contiguous() ? out_laid : empty(ctx, out_laid.shape(), out_laid.dtype(), Op::contiguous);
    if (!out_laid.contiguous()) copy_into(ctx, output, out_laid);
    result[0] = empty_like(ctx, q, Op::flash_backward);
    result[1] = empty_like(ctx, k, Op::flash_backward);
    result[2] = empty_like(ctx, v, Op::flash_backward);
    const std::int64_t padded = round_up(rows, 128);
    const Tensor softmax_d = empty(ctx, {batch, heads, padded}, DType::float32, Op::flash_backward);
    const Tensor dq_sum = empty(ctx, {batch, padded, heads, padded_width(width)}, DType::float32, Op::flash_backward);
    Tensor dk_expanded, dv_expanded;
    if (kv_heads != heads) {
      dk_expanded = empty(ctx, {batch, columns, heads, width}, k.dtype(), Op::flash_backward);
      dv_expanded = empty(ctx, {batch, columns, heads, width}, v.dtype(), Op::flash_backward);
    }
    if (Kernels* kernels = ctx.kernels(q))
      kernels->attention_backward(ctx.stream, array_of(result[0]), array_of(result[1]), array_of(result[2]),
                                  array_of(grad.transpose(1, 2)), array_of(output.transpose(1, 2)),
                                  array_of(forward.lse), array_of(q), array_of(k), array_of(v), {}, options);
  }
  multiply_pairs(ctx, q, pairs_of(q, k, options), 5);
  return result;
}

FlashOutput flash_forward(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionBehaviour& behaviour, const AttentionOptions& options) {
  const std::int64_t batch = q.size(0), heads = q.size(1), rows = q.size(2), width = q.size(3), columns = k.size(2);
  constexpr Op kOp = Op::scaled_dot_product_flash;
  FlashOutput result{.out = empty_like(ctx, q, kOp), .lse = empty(ctx, {batch, heads, rows}, DType::float32, kOp)};
  multiply_pairs(ctx, q, pairs_of(q, k, options), 2);

  const std::int64_t key_block = width <= 64 ? 256 : width <= 128 ? 128 : 64;
  const std::int64_t slots =
      static_cast<std::int64_t>(ctx.device.traits().sm_count) * (behaviour.flash_fills_twice ? 2 : 1);
  const std::int64_t splits = key_splits(batch * heads * ceil_div(rows, 64), slots, ceil_div(columns, key_block));
  Tensor lse_parts, out_parts;
  if (splits > 1) {
    lse_parts = empty(ctx, {splits, batch, heads, rows}, DType::float32, kOp);
    out_parts = empty(ctx, {splits, batch, heads, rows, padded_width(width)}, DType::float32, kOp);
  }
  if (Kernels* kernels = ctx.kernels(result.out))
    kernels->attention(ctx.stream, array_of(result.out), array_of(result.lse), array_of(q), array_of(k), array_of(v),
                       {}, options);
  if (behaviour.flash_rng_on_device) {
    result.seed = empty(ctx, {2}, DType::int64, kOp);
    result.offset = empty(ctx, {}, DType::int64, kOp);
    lse_parts.reset();
  }
  out_parts.reset(), lse_parts.reset();
  return result;
}

Tensor flash_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionBehaviour& behaviour, std::int64_t window, double scale) {
  const auto node = record<FlashBackward>(ctx, q, k, v);
  const AttentionOptions options = attention_options(q, {}, scale, window);
  if (node) node->save_operands(ctx, q, k, v), node->options = options;
  FlashOutput output = flash_forward(ctx, q, k, v, behaviour, options);
  set_history(output.out, node);
  if (node) node->save_output(ctx, output);
  return output.out;
}

}  // namespace qlp

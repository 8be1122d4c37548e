#include <algorithm>

#include "autograd/attention.h"
#include "autograd/attention_options.h"
#include "autograd/record.h"
#include "base/rounding.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// A backward kernel's tile: `queries` x `keys`, in steps of `columns` of the head (cutlassB.h, kernel_backward.h).
struct Tile {
  std::int64_t queries, keys, columns;
  bool accumulates_keys;  ///< gradients of k and v are summed in the workspace
};

/// GPUs that give a block at most 99 KiB of shared memory cannot run the largest tiles (CUDA C programming guide, table
/// of technical specifications by compute capability).
bool has_little_shared_memory(std::uint32_t compute_capability) {
  return (compute_capability >= 86 && compute_capability <= 89 && compute_capability != 87) ||
         compute_capability >= 120;
}

/// The first kernel in cutlassB.h's list that fits (torch 2.4 to 2.14, compute capability 8.0 on).
Tile backward_tile(DType dtype, std::int64_t width, std::uint32_t compute_capability) {
  const bool little = has_little_shared_memory(compute_capability);
  if (width <= 64) return {64, 64, 64, false};
  if (dtype == DType::float32) return {little ? 64 : 128, 64, 64, false};
  if (width <= 96 && little) return {128, 64, 64, false};
  if (width <= 128) return little ? Tile{64, 64, 64, true} : Tile{128, 128, 128, false};
  return {128, 64, 64, true};
}

/// Params::workspace_size in kernel_backward.h: staging of dq by block and column, with a lock each; of dk and dv by
/// split.
std::int64_t workspace_bytes(const Tile& tile, std::int64_t batch_heads, std::int64_t rows, std::int64_t width) {
  std::int64_t splits = ceil_div(rows, tile.keys);
  if (batch_heads >= 256 && rows <= 2 * tile.keys) splits = 1;
  if (tile.accumulates_keys) splits = std::min(splits, 200 / batch_heads);
  splits = std::max<std::int64_t>(splits, 1);
  constexpr std::int64_t kLock = 4;  // of 32 bits: lock, counter, padding
  std::int64_t elements =
      ceil_div(rows, tile.queries) * ceil_div(width, tile.columns) * (tile.queries * tile.columns + kLock);
  if (tile.accumulates_keys) elements += 2 * splits * tile.keys * round_up(width, tile.queries);
  return batch_heads * elements * static_cast<std::int64_t>(sizeof(float));
}

/// A mask as wide as there are keys: what pads its rows is left out.
Array seen(const Tensor& mask, const Tensor& k) {
  Array out = array_of(mask);
  if (out.given()) out.shape = out.shape.with(-1, k.size(2));
  return out;
}

struct EfficientBackward final : Node {
  using Node::Node;
  SavedTensor q, k, v, mask, out, lse, seed, offset;
  double scale = 0;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor qs = q.unpack(ctx), ks = k.unpack(ctx), vs = v.unpack(ctx);
    const Tensor bias = mask.saved() ? mask.unpack(ctx) : Tensor();
    const Tensor os = out.unpack(ctx), ls = lse.unpack(ctx);
    const Tensor rng = seed.saved() ? seed.unpack(ctx) : Tensor(), off = offset.saved() ? offset.unpack(ctx) : Tensor();
    const std::int64_t batch = qs.size(0), heads = qs.size(1), kv_heads = ks.size(1), rows = qs.size(2),
                       width = qs.size(3);
    constexpr Op kOp = Op::efficient_backward;
    Grads result(3);
    {
      const Tensor laid = grads[0].transpose(1, 2);
      const Tensor grad = laid.contiguous() ? laid : empty(ctx, laid.shape(), laid.dtype(), Op::contiguous);
      if (!laid.contiguous()) copy_into(ctx, grad, laid);
      const auto like = [&](const Tensor& x) {
        return empty(ctx, {batch, x.size(2), x.size(1), x.size(3)}, x.dtype(), kOp).transpose(1, 2);
      };
      result[0] = like(qs), result[1] = like(ks), result[2] = like(vs);
      Tensor dk_expanded, dv_expanded;
      if (kv_heads != heads) {
        dk_expanded = empty(ctx, {batch, ks.size(2), heads, width}, ks.dtype(), kOp);
        dv_expanded = empty(ctx, {batch, ks.size(2), heads, width}, vs.dtype(), kOp);
      }
      Tensor delta;
      if (qs.dtype() ==
          DType::float32) {  // (grad * out).sum(-1), turned and made contiguous: this kernel wants it made
        Tensor product = empty(ctx, {batch, rows, heads, width}, DType::float32, Op::mul);
        Tensor sum = empty(ctx, {batch, rows, heads}, DType::float32, Op::sum);
        delta = empty(ctx, {batch, heads, rows}, DType::float32, Op::contiguous);
        sum.reset(), product.reset();
      } else {
        delta = empty(ctx, {batch, heads, rows}, DType::float32, kOp);
      }
      const Tile tile = backward_tile(qs.dtype(), width, ctx.device.traits().compute_capability);
      const Tensor workspace = empty(ctx, {workspace_bytes(tile, batch * heads, rows, width)}, DType::uint8, kOp);
      if (Kernels* kernels = ctx.kernels(qs))
        kernels->attention_backward(ctx.stream, array_of(result[0]), array_of(result[1]), array_of(result[2]),
                                    array_of(grad.transpose(1, 2)), array_of(os), array_of(ls), array_of(qs),
                                    array_of(ks), array_of(vs), seen(bias, ks), attention_options(qs, bias, scale));
      delta.reset();
    }
    multiply_pairs(ctx, qs, bias.defined() ? rows * ks.size(2) : causal_pairs(rows), 5);
    drop_unwanted(*this, result);
    return result;
  }
  void release() override {
    mask.release(), k.release(), q.release(), v.release(), lse.release(), out.release(), offset.release(),
        seed.release();
  }
};

}  // namespace

Tensor efficient_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                           const AttentionBehaviour& behaviour, double scale) {
  const auto node = record<EfficientBackward>(ctx, q, k, v);
  if (node) {
    if (mask.defined()) node->mask.save(ctx, mask);
    node->k.save(ctx, k), node->q.save(ctx, q), node->v.save(ctx, v);
    node->scale = scale;
  }
  const std::int64_t batch = q.size(0), heads = q.size(1), rows = q.size(2), width = q.size(3);
  constexpr Op kOp = Op::scaled_dot_product_efficient;
  multiply_pairs(ctx, q, mask.defined() ? rows * k.size(2) : causal_pairs(rows), 2);
  Tensor seed, offset;
  if (behaviour.efficient_rng_on_device) {
    seed = empty(ctx, {}, DType::int64, kOp);
    offset = empty(ctx, {}, DType::int64, kOp);
  }
  const Tensor laid = empty(ctx, {batch, rows, heads, width}, q.dtype(), kOp);
  constexpr std::int64_t kAlignLse = 32;  // kernel_forward.h
  const std::int64_t lse_rows = records(ctx, q, k, v) ? round_up(rows, kAlignLse) : 0;
  const Tensor lse = empty(ctx, {batch, heads, lse_rows}, DType::float32, kOp);
  // Heads wider than 128 are summed in global memory, in float32.
  if (width > 128 && q.dtype() != DType::float32) scratch(ctx, bytes_of(laid.shape(), DType::float32).count(), kOp);
  Tensor out = laid.transpose(1, 2);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->attention(ctx.stream, array_of(out), array_of(lse), array_of(q), array_of(k), array_of(v), seen(mask, k),
                       attention_options(q, mask, scale));
  set_history(out, node);
  if (node) {
    node->lse.save_result(ctx, lse), node->out.save_result(ctx, out);
    if (seed.defined()) node->offset.save_result(ctx, offset), node->seed.save_result(ctx, seed);
  }
  return out;
}

}  // namespace qlp

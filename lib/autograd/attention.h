// Scaled dot product attention on the fused CUDA kernels (ATen/native/transformers/cuda/, torch 2.4 to 2.14).
#pragma once

#include "autograd/attention_behaviour.h"
#include "autograd/node.h"

namespace qlp {

/// FlashAttention 2. q [B, H, S, D], k and v [B, Hkv, S, D], 16-bit, D <= 256. Gives [B, H, S, D] in the
/// memory order of q. Heads of k and v may be fewer than those of q (the kernel groups them itself).
/// Causal; through a window of so many keys, if one is given. Scores are scaled by `scale`, here and below; 0: by one
/// over the root of D.
Tensor flash_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionBehaviour& behaviour, std::int64_t window = 0, double scale = 0);

/// The memory-efficient kernel. Shapes as above; gives [B, H, S, D] that lies in memory as [B, S, H, D]. `mask` [B or
/// 1, H or 1, S, S] in the dtype of q, or none.
Tensor efficient_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                           const AttentionBehaviour& behaviour, double scale = 0);

/// Pairs of a query and a key that causal attention over `rows` looks at, through a window if one is given.
constexpr std::int64_t causal_pairs(std::int64_t rows, std::int64_t window = 0) {
  const std::int64_t cut = window == 0 || window > rows ? 0 : rows - window;
  return rows * (rows + 1) / 2 - cut * (cut + 1) / 2;
}
/// The arithmetic of a fused kernel: so many products of scores or of values over `pairs` of each head, for q [B, H, S,
/// D]. Forward there are two; backward five, as the scores are made again.
void multiply_pairs(Context& ctx, const Tensor& q, std::int64_t pairs, int products);

/// The composite that takes over where no fused kernel can: fewer heads in k and v than in q, without a mask.
Tensor math_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, double scale = 0);

/// F.scaled_dot_product_attention, causal where `mask` [B or 1, 1, S, S] (boolean or additive) is not given: casts
/// under autocast, makes the mask additive and aligned, and picks a kernel.
Tensor scaled_dot_product_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                    const AttentionBehaviour& behaviour, double scale = 0);

}  // namespace qlp

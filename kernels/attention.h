// Causal attention without the matrix of scores (FlashAttention): forward keeps one number per row, backward makes the
// scores again.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// Head widths up to this.
inline constexpr std::int64_t kMaxHeadWidth = 256;

/// Tensors are [batch, heads, rows, width], strided. Heads of q share those of k and v in groups of equal size.
struct Attention {
  View q, k, v, out;
  View lse;     ///< [batch, heads, rows] float32: log of the sum of exp of a row's scores; forward: data may be null
  View mask;    ///< [batch, heads, rows, columns]: added to the scores, or boolean (true: seen); data may be null
  float scale;  ///< of the products of q and k
  bool causal;  ///< the last query sees the last key
  std::int64_t window;  ///< keys that a query sees, itself included; 0: all
};
cudaError_t attention(const Attention& of, cudaStream_t stream);

/// From the gradient of `out`; the other three are written.
struct AttentionGradients {
  View out, q, k, v;
};
cudaError_t attention_backward(const Attention& of, const AttentionGradients& gradients, cudaStream_t stream);

}  // namespace qlp::kernels

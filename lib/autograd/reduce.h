// Reductions, softmax and the losses, as autograd records them.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// a.mean(-1, keepdim=True)
Tensor mean_last(Context& ctx, const Tensor& a);
/// softmax over the last dimension in `dtype` (F.softmax(a, dim=-1, dtype=...)); float32 under autocast.
Tensor softmax(Context& ctx, const Tensor& a, DType dtype);
/// F.cross_entropy(logits [N, V], labels [N]): a 0-dim loss, the sum or the mean over labels that are not negative.
enum class LossReduction : std::uint8_t { sum, mean };
Tensor cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels, LossReduction reduction);

}  // namespace qlp

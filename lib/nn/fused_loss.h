// The head's product and the cross entropy in one, chunk by chunk (liger_kernel/ops/fused_linear_cross_entropy.py).
#pragma once

#include "nn/loss.h"
#include "tensor/context.h"

namespace qlp {

/// LigerForCausalLMLoss: hidden [B, S, H], head [V, H], labels [B, S]; `items` as in causal_lm_loss. No logits are
/// left: the gradients are worked out in the forward pass and kept.
Tensor liger_causal_lm_loss(Context& ctx, const Tensor& hidden, const Tensor& head, const Tensor& labels,
                            const ItemNumber& items, const ModelBehaviour& behaviour);

}  // namespace qlp

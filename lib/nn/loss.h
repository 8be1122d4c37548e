// The loss of a causal language model on its logits, as transformers computes it by version.
#pragma once

#include "nn/behaviour.h"
#include "tensor/context.h"

namespace qlp {

/// A sum of losses over the number of label tokens, if there is one (a loss that is a mean already stays what it is).
Tensor loss_per_item(Context& ctx, const Tensor& sum, const Tensor& num_items, const ModelBehaviour& behaviour);

/// ForCausalLMLoss: logits [B, S, V], labels [B, S]; `num_items` 0-dim or none (then the mean over tokens).
Tensor causal_lm_loss(Context& ctx, const Tensor& logits, const Tensor& labels, const Tensor& num_items,
                      const ModelBehaviour& behaviour);

}  // namespace qlp

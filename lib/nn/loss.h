// The loss of a causal language model on its logits, as transformers computes it by version.
#pragma once

#include "nn/behaviour.h"
#include "tensor/context.h"

namespace qlp {

/// The number of label tokens of an optimizer step, on the device (0-dim, or none) or on the host.
struct ItemNumber {
  // NOLINTNEXTLINE(google-explicit-constructor): the number on the device alone
  ItemNumber(const Tensor& device, double host = 1) : on_device(device), on_host(host) {}
  const Tensor& on_device;
  double on_host;
};

/// True where the loss is a sum that is divided by that number; else it is a mean.
inline bool sums_losses(const ItemNumber& items, const ModelBehaviour& behaviour) {
  return !behaviour.averages_loss && (behaviour.item_count_on_host || items.on_device.defined());
}

/// A sum of losses over the number of label tokens; a mean stays what it is.
Tensor loss_per_item(Context& ctx, const Tensor& sum, const ItemNumber& items, const ModelBehaviour& behaviour);

/// The labels [B, S] one place to the left; the last of each row, which has none, is left out (negative). `padded` is
/// what they are cut from.
Tensor shifted_labels(Context& ctx, const Tensor& labels, Tensor& padded);

/// ForCausalLMLoss, of labels that somebody has moved by one already or not: logits [B, S, V], labels [B, S].
Tensor causal_lm_loss(Context& ctx, const Tensor& logits, const Tensor& labels, const ItemNumber& items,
                      const ModelBehaviour& behaviour, bool labels_are_shifted = false);

}  // namespace qlp

#include "nn/loss.h"

#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "autograd/views.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

Tensor loss_per_item(Context& ctx, const Tensor& sum, const ItemNumber& items, const ModelBehaviour& behaviour) {
  if (behaviour.averages_loss) return sum;
  if (behaviour.item_count_on_host) return scale(ctx, sum, 1 / items.on_host, Op::div);
  return items.on_device.defined() ? div(ctx, sum, items.on_device) : sum;
}

Tensor shifted_labels(Context& ctx, const Tensor& labels, Tensor& padded) {
  const std::int64_t rows = labels.size(1);
  padded = empty(ctx, {labels.size(0), rows + 1}, DType::int64, Op::pad);
  if (ctx.kernels(padded)) {
    constexpr double kIgnored = -100;
    fill(ctx, padded, kIgnored);
    copy_into(ctx, padded.narrow(1, 0, rows), labels);
  }
  return contiguous(ctx, padded.narrow(1, 1, rows));
}

Tensor causal_lm_loss(Context& ctx, const Tensor& model_logits, const Tensor& model_labels, const ItemNumber& items,
                      const ModelBehaviour& behaviour, bool labels_are_shifted) {
  const Scoped category(ctx.category, Category::logits_and_loss);
  const std::int64_t batch = model_logits.size(0), rows = model_logits.size(1), vocabulary = model_logits.size(2);
  const Tensor wide = to(ctx, model_logits, DType::float32);
  Tensor padded, labels, logits;  // Python's names: the padded labels stay beside the copy that more than one row needs
  if (behaviour.shifts_labels) {
    labels = labels_are_shifted ? model_labels : shifted_labels(ctx, model_labels, padded);
    logits = reshape(ctx, wide, {batch * rows, vocabulary});
  } else {
    Tensor shifted = slice(ctx, wide, 1, 0, rows - 1);
    if (behaviour.attention.full_slices_record) shifted = slice(ctx, shifted, 2, 0, vocabulary);
    shifted = contiguous(ctx, shifted);
    labels = contiguous(ctx, model_labels.narrow(1, 1, rows - 1));
    logits = reshape(ctx, shifted, {batch * (rows - 1), vocabulary});
  }
  const LossReduction reduction = sums_losses(items, behaviour) ? LossReduction::sum : LossReduction::mean;
  const Tensor loss = cross_entropy(ctx, logits, labels, reduction);
  return loss_per_item(ctx, loss, items, behaviour);
}

}  // namespace qlp

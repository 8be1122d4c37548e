#include "nn/loss.h"

#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "autograd/views.h"
#include "tensor/factories.h"

namespace qlp {

Tensor loss_per_item(Context& ctx, const Tensor& sum, const Tensor& num_items, const ModelBehaviour& behaviour) {
  if (behaviour.averages_loss) return sum;
  if (behaviour.item_count_on_host) return scale(ctx, sum, Op::div);
  return num_items.defined() ? div(ctx, sum, num_items) : sum;
}

Tensor causal_lm_loss(Context& ctx, const Tensor& model_logits, const Tensor& model_labels, const Tensor& num_items,
                      const ModelBehaviour& behaviour) {
  const Scoped category(ctx.category, Category::logits_and_loss);
  const std::int64_t batch = model_logits.size(0), rows = model_logits.size(1), vocabulary = model_logits.size(2);
  const Tensor wide = to(ctx, model_logits, DType::float32);
  Tensor padded, labels, logits;  // Python's names: the padded labels stay beside the copy that more than one row needs
  if (behaviour.shifts_labels) {
    padded = empty(ctx, {batch, rows + 1}, DType::int64, Op::pad);
    labels = contiguous(ctx, padded.narrow(1, rows));
    logits = reshape(ctx, wide, {batch * rows, vocabulary});
  } else {
    Tensor shifted = slice(ctx, wide, 1, rows - 1);
    if (behaviour.attention.full_slices_record) shifted = slice(ctx, shifted, 2, vocabulary);
    shifted = contiguous(ctx, shifted);
    labels = contiguous(ctx, model_labels.narrow(1, rows - 1));
    logits = reshape(ctx, shifted, {batch * (rows - 1), vocabulary});
  }
  const Tensor loss = cross_entropy(ctx, logits, labels);
  return loss_per_item(ctx, loss, num_items, behaviour);
}

}  // namespace qlp

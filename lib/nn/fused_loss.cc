#include "nn/fused_loss.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/record.h"
#include "autograd/reduce.h"
#include "autograd/views.h"
#include "base/rounding.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

bool is_half(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

struct FusedLossBackward final : Node {
  using Node::Node;
  SavedTensor input, weight;
  Grads backward(Context& ctx, Grads& grads) override {
    Grads out(2);
    out[0] = input.unpack(ctx);
    if (wants(1)) out[1] = weight.unpack(ctx);
    // torch.equal(grad_output, 1.0)
    const Tensor one = empty(ctx, {}, DType::float32, Op::to_copy);
    const Tensor equal = empty(ctx, {}, DType::boolean, Op::eq);
    scratch(ctx, 1, Op::eq);
    for (const Tensor& grad : out)
      if (grad.defined()) compute(ctx, Binary::mul, grad, grad, grads[0]);  // in place
    return out;
  }
  void release() override { input.release(), weight.release(); }
};

/// One pass over the tokens.
class FusedLoss {
 public:
  FusedLoss(Context& ctx, const Tensor& input, const Tensor& weight, const Tensor& labels, LossReduction reduction,
            const LigerBehaviour& behaviour)
      : ctx_(ctx), input_(input), weight_(weight), labels_(labels), reduction_(reduction), behaviour_(behaviour) {}

  Tensor run() {
    const std::int64_t rows = input_.size(0), width = input_.size(1), vocabulary = weight_.size(0);
    grad_input = empty_like(ctx_, input_, Op::zeros);
    if (weight_.requires_grad()) grad_weight = empty_like(ctx_, weight_, Op::zeros), fill(ctx_, grad_weight, 0);
    const Tensor losses = empty(ctx_, {rows}, DType::float32, Op::zeros);
    const Tensor mask = empty(ctx_, {rows}, DType::boolean, Op::ne);
    const double items = count_items(mask);

    const std::int64_t parts = ceil_div(vocabulary, width);
    const auto even = static_cast<std::uint64_t>(ceil_div(rows, parts));
    auto chunk = static_cast<std::int64_t>(std::bit_ceil(even));
    if (behaviour_.loss_reuses_buffer) chunk = std::min(chunk, rows);
    const bool writes_out = behaviour_.loss_reuses_buffer && input_.dtype() == weight_.dtype() &&
                            (!ctx_.autocast.enabled || input_.dtype() == ctx_.autocast.dtype);
    Tensor logits;
    if (writes_out) logits = empty(ctx_, {chunk, vocabulary}, input_.dtype(), Op::empty);
    for (std::int64_t start = 0; start < rows; start += chunk) {
      const std::int64_t n = std::min(chunk, rows - start);
      const Tensor part = input_.narrow(0, start, n), into = grad_input.narrow(0, start, n);
      Tensor used;
      if (writes_out) {
        used = logits.narrow(0, 0, n);
        gemm_into(ctx_, used, {part}, {.tensor = weight_, .turned = true});
        differentiate(used, losses, start, items);
        gemm_into(ctx_, into, {used}, {weight_});
      } else {
        logits = project(part);
        used = logits;
        differentiate(used, losses, start, items);
        const Tensor grad = product(used, weight_);
        copy_into(ctx_, into, grad);
      }
      if (grad_weight.defined()) add_to_weight(used, part);
      used.reset();
      if (behaviour_.loss_reuses_buffer && !writes_out) logits.reset();
    }
    if (behaviour_.loss_reuses_buffer) logits.reset();
    Tensor loss = empty(ctx_, {}, DType::float32, Op::sum);
    full_reduction_scratch(ctx_, rows, Op::sum);
    reduce_all(ctx_, Reduce::sum, loss, losses, 1 / items);
    return loss;
  }

  Tensor grad_input, grad_weight;

 private:
  /// (target != ignore_index).sum(): in int64, from a copy of the mask.
  /// Gives what losses and gradients are divided by: for a sum 1.
  double count_items(const Tensor& mask) {
    const Tensor count = empty(ctx_, {}, DType::int64, Op::sum);
    const Tensor wide = empty(ctx_, mask.shape(), DType::int64, Op::to_copy);
    if (reduction_ == LossReduction::sum || !ctx_.kernels(count)) return 1;
    compute(ctx_, Unary::not_negative, mask, labels_);
    copy_into(ctx_, wide, mask);
    reduce_all(ctx_, Reduce::sum, count, wide);
    return item(ctx_, count);
  }
  /// The losses of a chunk; its logits become their gradient.
  void differentiate(const Tensor& logits, const Tensor& losses, std::int64_t start, double items) {
    Kernels* const kernels = ctx_.kernels(logits);
    if (!kernels) return;
    const std::int64_t n = logits.size(0);
    kernels->cross_entropy_in_place(ctx_.stream, array_of(losses.narrow(0, start, n)), array_of(logits),
                                    array_of(labels_.narrow(0, start, n)));
    if (items != 1) compute(ctx_, Unary::mul, logits, logits, 1 / items);
  }
  /// part @ weight.t(); the transpose is no leaf, so autocast casts it anew each time.
  Tensor project(const Tensor& part) {
    const Tensor turned = autocast_low(ctx_, weight_.transpose(0, 1));
    return product(part, turned);
  }
  Tensor product(const Tensor& left, const Tensor& right) {
    const Tensor b = autocast_low(ctx_, right);
    const Tensor a = autocast_low(ctx_, left);
    return gemm(ctx_, {a}, {b}, a.dtype());
  }
  void add_to_weight(const Tensor& logits, const Tensor& part) {
    const bool in_place = behaviour_.loss_reuses_buffer && is_half(logits.dtype()) &&
                          (grad_weight.dtype() == DType::float32 ||
                           (grad_weight.dtype() == logits.dtype() && ctx_.device.traits().compute_capability >= 80));
    if (in_place) {
      const Tensor aligned = to(ctx_, part, logits.dtype());
      gemm_into(ctx_, grad_weight, {.tensor = logits, .turned = true}, {aligned}, 1);
      return;
    }
    const Tensor update = product(logits.transpose(0, 1), part);
    const Tensor wide = to(ctx_, update, DType::float32);
    compute(ctx_, Binary::add, grad_weight, grad_weight, wide);
  }

  Context& ctx_;
  const Tensor& input_;
  const Tensor& weight_;
  const Tensor& labels_;
  LossReduction reduction_;
  LigerBehaviour behaviour_;
};

Tensor fused_linear_cross_entropy(Context& ctx, const Tensor& input, const Tensor& weight, const Tensor& labels,
                                  LossReduction reduction, const LigerBehaviour& behaviour) {
  const auto node = record<FusedLossBackward>(ctx, input, weight);
  const Scoped no_grad(ctx.grad_enabled, false);
  FusedLoss fused(ctx, input, weight, labels, reduction, behaviour);
  Tensor loss = fused.run();
  if (node) {
    node->input.save(ctx, fused.grad_input);
    if (fused.grad_weight.defined()) node->weight.save(ctx, fused.grad_weight);
  }
  set_history(loss, node);
  return loss;
}

}  // namespace

Tensor liger_causal_lm_loss(Context& ctx, const Tensor& hidden, const Tensor& head, const Tensor& labels,
                            const ItemNumber& items, const ModelBehaviour& behaviour) {
  const Scoped category(ctx.category, Category::logits_and_loss);
  const std::int64_t batch = labels.size(0), rows = labels.size(1);
  Tensor padded;
  const Tensor shifted = shifted_labels(ctx, labels, padded);
  const Tensor flat = reshape(ctx, hidden, {batch * rows, hidden.size(-1)});
  Tensor loss = fused_linear_cross_entropy(ctx, flat, head, shifted.view({batch * rows}),
                                           sums_losses(items, behaviour) ? LossReduction::sum : LossReduction::mean,
                                           *behaviour.liger);
  return loss_per_item(ctx, loss, items, behaviour);
}

}  // namespace qlp

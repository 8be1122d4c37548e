#include "autograd/reduce.h"

#include "autograd/autocast.h"
#include "autograd/pointwise.h"
#include "autograd/record.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

struct MeanBackward final : Node {
  using Node::Node;
  Shape source;
  Grads backward(Context& ctx, Grads& grads) override {  // grad.expand(source) / n
    Grads out;
    out.push_back(empty(ctx, source, grads[0].dtype(), Op::div));
    compute(ctx, Unary::mul, out[0], grads[0], 1 / static_cast<double>(source[-1]));
    return out;
  }
};

/// Softmax and log_softmax: keep the result.
struct SoftmaxBackward final : Node {
  SoftmaxBackward(Context& ctx, Op op) : Node(ctx), op_(op) {}
  SavedTensor result;
  DType input_dtype = DType::float32;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor y = result.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, y, input_dtype, op_));
    // grad * result, made first in full (softmax_backward_cuda_out in ATen/native/cuda/SoftMax.cu).
    if (op_ == Op::softmax_backward) const Tensor product = empty_like(ctx, y, Op::mul);
    if (Kernels* kernels = ctx.kernels(y))
      kernels->softmax_backward(ctx.stream, array_of(out[0]), array_of(grads[0]), array_of(y),
                                op_ == Op::log_softmax_backward);
    return out;
  }
  void release() override { result.release(); }

 private:
  Op op_;
};

struct NllLossBackward final : Node {
  using Node::Node;
  SavedTensor log_probabilities, labels, total_weight;
  LossReduction reduction = LossReduction::mean;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor self = log_probabilities.unpack(ctx);
    const Tensor target = labels.unpack(ctx);
    const Tensor weight = total_weight.unpack(ctx);
    Grads out;
    out.push_back(empty_like(ctx, self, Op::nll_loss_backward));
    if (Kernels* kernels = ctx.kernels(self))
      kernels->nll_loss_backward(ctx.stream, array_of(out[0]), array_of(grads[0]), array_of(target), array_of(weight),
                                 reduction == LossReduction::mean);
    return out;
  }
  void release() override { labels.release(), log_probabilities.release(), total_weight.release(); }
};

Tensor softmax_like(Context& ctx, const Tensor& a, DType dtype, Op op, Op backward_op) {
  Ref<SoftmaxBackward> node;
  if (records(ctx, a)) {
    node = make_ref<SoftmaxBackward>(ctx, backward_op);
    node->add_edge(a);
    node->input_dtype = a.dtype();
  }
  Tensor out = empty_like(ctx, a, dtype, op);
  if (Kernels* kernels = ctx.kernels(out))
    kernels->softmax(ctx.stream, array_of(out), array_of(a), op == Op::log_softmax);
  set_history(out, node);
  if (node) node->result.save_result(ctx, out);
  return out;
}

}  // namespace

Tensor mean_last(Context& ctx, const Tensor& a) {
  const auto node = record<MeanBackward>(ctx, a);
  if (node) node->source = a.shape();
  Tensor out = empty(ctx, a.shape().with(-1, 1), a.dtype(), Op::mean);
  compute(ctx, Reduce::sum, out, a, 1 / static_cast<double>(a.size(-1)));
  set_history(out, node);
  return out;
}

Tensor softmax(Context& ctx, const Tensor& a, DType dtype) {
  // Only float16 is read as it is: the kernel converts that on the way (ATen/native/SoftMax.cpp).
  const Tensor x = a.dtype() == DType::float16 && dtype == DType::float32 ? a : to(ctx, a, dtype);
  return softmax_like(ctx, x, dtype, Op::softmax, Op::softmax_backward);
}

Tensor cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels, LossReduction reduction) {
  const Tensor x = autocast_fp32(ctx, logits);
  const Tensor log_probabilities = softmax_like(ctx, x, x.dtype(), Op::log_softmax, Op::log_softmax_backward);
  const auto node = record<NllLossBackward>(ctx, log_probabilities);
  if (node) {
    node->reduction = reduction;
    node->log_probabilities.save(ctx, log_probabilities), node->labels.save(ctx, labels);
  }
  Tensor loss = empty(ctx, {}, x.dtype(), Op::nll_loss);
  const Tensor total_weight = empty(ctx, {}, x.dtype(), Op::nll_loss);
  if (Kernels* kernels = ctx.kernels(loss))
    kernels->nll_loss(ctx.stream, array_of(loss), array_of(total_weight), array_of(log_probabilities), array_of(labels),
                      reduction == LossReduction::mean);
  set_history(loss, node);
  if (node) node->total_weight.save_result(ctx, total_weight);
  return loss;
}

}  // namespace qlp

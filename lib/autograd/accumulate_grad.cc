#include "autograd/accumulate_grad.h"

#include <utility>

#include "tensor/factories.h"

namespace qlp {

AccumulateGrad::AccumulateGrad(Tensor leaf, StreamId stream) : Node(stream), leaf_(std::move(leaf)) {
  inputs().push_back({leaf_.shape(), leaf_.dtype()});
}

AccumulateGrad::~AccumulateGrad() {
  Node*& known = autograd_data(leaf_).accumulator;
  if (known == this) known = nullptr;
}

Grads AccumulateGrad::backward(Context& ctx, Grads& grads) {
  Tensor& incoming = grads[0];
  if (!incoming.defined()) return {};
  Tensor& grad = autograd_data(leaf_).grad;
  if (grad.defined()) return {};  // added in place
  const bool same_layout = leaf_.contiguous() ? incoming.contiguous() : incoming.strides() == leaf_.strides();
  if (incoming.use_count() == 1 && same_layout)
    grad = incoming.alias();
  else
    grad = empty_like(ctx, leaf_, incoming.dtype(), Op::clone);
  AllocationLabel label = grad.storage().label();
  label.category = Category::gradients;
  grad.storage().set_label(label);
  return {};
}

}  // namespace qlp

#include "autograd/accumulate_grad.h"

#include <utility>

#include "tensor/compute.h"
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
  if (!grads[0].defined()) return {};
  const bool taken_over = accumulate(ctx, grads[0]);
  const auto& hooks = autograd_data(leaf_).post_accumulate_hooks;
  if (taken_over && !hooks.empty()) grads[0].reset();
  for (const PostHook& hook : hooks) hook(ctx);
  return {};
}

bool AccumulateGrad::accumulate(Context& ctx, const Tensor& incoming) const {
  Tensor& grad = autograd_data(leaf_).grad;
  if (grad.defined()) {
    compute(ctx, Binary::add, grad, grad, incoming);
    return false;
  }
  const bool same_layout = leaf_.contiguous() ? incoming.contiguous() : incoming.strides() == leaf_.strides();
  const bool takes_over = incoming.use_count() == 1 && same_layout;
  if (takes_over) {
    grad = incoming.alias();
  } else {
    grad = empty_like(ctx, leaf_, incoming.dtype(), Op::clone);
    copy_elements(ctx, grad, incoming);
  }
  AllocationLabel label = grad.storage().label();
  label.category = Category::gradients;
  grad.storage().set_label(label);
  return takes_over;
}

}  // namespace qlp

#include "autograd/node.h"

#include <utility>

#include "autograd/accumulate_grad.h"

namespace qlp {

// A graph is as deep as the model: taken apart with a list, not by recursion.
Node::~Node() {
  std::vector<Ref<Node>> doomed;
  const auto take_edges = [&](Node& node) {
    for (Edge& edge : node.edges_)
      if (edge.node && edge.node->use_count() == 1)
        doomed.push_back(std::move(edge.node));
      else
        edge.node.reset();
  };
  take_edges(*this);
  while (!doomed.empty()) {
    const Ref<Node> node = std::move(doomed.back());
    doomed.pop_back();
    take_edges(*node);
  }
}

void Node::add_edge(const Tensor& operand) {
  if (operand.defined() && operand.requires_grad())
    edges_.push_back(gradient_edge(operand, stream_));
  else
    edges_.emplace_back();
}

AutogradData& autograd_data(const Tensor& tensor) {
  auto& slot = tensor.impl()->autograd;
  if (!slot) slot = std::make_unique<AutogradData>();
  return static_cast<AutogradData&>(*slot);
}

bool is_leaf(const Tensor& tensor) {
  const auto& slot = tensor.impl()->autograd;
  return !slot || !static_cast<const AutogradData&>(*slot).grad_fn;
}

void set_requires_grad(const Tensor& leaf, bool requires_grad) { leaf.impl()->requires_grad = requires_grad; }

const Tensor& grad_of(const Tensor& leaf) { return autograd_data(leaf).grad; }

void set_grad(const Tensor& leaf, Tensor grad) { autograd_data(leaf).grad = std::move(grad); }

void set_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl& impl = *tensor.impl();
  if (impl.dtype != data.dtype() && impl.autograd) autograd_data(tensor).accumulator = nullptr;
  impl.storage = data.impl()->storage;
  impl.shape = data.shape(), impl.strides = data.strides();
  impl.dtype = data.dtype(), impl.contiguous = data.contiguous();
  impl.offset = data.offset();
}

Edge gradient_edge(const Tensor& tensor, StreamId stream) {
  AutogradData& data = autograd_data(tensor);
  if (data.grad_fn) return {data.grad_fn, data.slot};
  if (!data.accumulator) {
    auto accumulator = make_ref<AccumulateGrad>(tensor, stream);
    data.accumulator = accumulator.get();
    for (auto& hook : data.leaf_hooks) accumulator->pre_hooks().push_back(hook);
    return {std::move(accumulator), 0};
  }
  return {Ref<Node>(data.accumulator), 0};
}

void register_hook(const Tensor& tensor, PreHook hook) {
  AutogradData& data = autograd_data(tensor);
  if (!data.grad_fn) {
    if (data.accumulator) data.accumulator->pre_hooks().push_back(hook);
    data.leaf_hooks.push_back(std::move(hook));
    return;
  }
  data.grad_fn->pre_hooks().push_back(std::move(hook));
}

void register_post_accumulate_hook(const Tensor& leaf, PostHook hook) {
  autograd_data(leaf).post_accumulate_hooks.push_back(std::move(hook));
}

void set_history(const Tensor& result, const Ref<Node>& node) {
  if (!node) return;
  AutogradData& data = autograd_data(result);
  data.grad_fn = node;
  data.slot = static_cast<std::uint32_t>(node->inputs().size());
  node->inputs().push_back({result.shape(), result.dtype()});
  result.impl()->requires_grad = true;
}

}  // namespace qlp

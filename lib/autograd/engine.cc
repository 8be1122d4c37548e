#include "autograd/engine.h"

#include <algorithm>
#include <utility>

#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"
#include "tensor/wait_stream.h"

namespace qlp {
namespace {

bool runs_later(const Node* a, const Node* b) { return a->sequence() < b->sequence(); }

/// The root of a backward pass (torch::autograd::GraphRoot): hands out the gradients that it was started with.
class GraphRoot final : public Node {
 public:
  explicit GraphRoot(std::vector<Tensor> grads) : grads_(std::move(grads)) {}
  Grads backward(Context&, Grads&) override {
    Grads out;
    for (const Tensor& grad : grads_) out.push_back(grad);
    return out;
  }

 private:
  std::vector<Tensor> grads_;
};

/// The engine's check of what a node returned: sums over broadcast dimensions, casts to the operand's dtype.
void fit(Context& ctx, Tensor& grad, const Node::InputMeta& meta) {
  if (grad.shape() != meta.shape && grad.numel() != meta.shape.numel()) {
    Shape kept = grad.shape();
    const int extra = static_cast<int>(grad.shape().rank()) - static_cast<int>(meta.shape.rank());
    DimensionMask reduced = 0;
    for (int i = 0; i < static_cast<int>(kept.rank()); ++i)
      if (i < extra || meta.shape[i - extra] == 1) kept = kept.with(i, 1), reduced |= 1U << i;
    const Tensor whole = std::exchange(grad, empty(ctx, kept, grad.dtype(), Op::sum));
    reduction_scratch(ctx, whole, reduced, Op::sum);
    compute(ctx, Reduce::sum, grad, whole);
    if (kept != meta.shape) grad = grad.view(meta.shape);
  }
  if (grad.dtype() == meta.dtype) return;
  const Tensor cast = empty_like(ctx, grad, meta.dtype, Op::to_copy);
  copy_into(ctx, cast, grad);
  grad = cast;
}

}  // namespace

void Engine::backward(Context& ctx, const std::vector<Tensor>& roots, std::vector<Tensor> grads) {
  const Scoped thread(ctx.thread, LaunchThread::autograd);
  const Scoped stream(ctx.stream, StreamId{0});
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped autocast(ctx.autocast.enabled, false);
  const Scoped category(ctx.category, Category::gradient_temporaries);
  std::vector<SavedTensorHooks*> no_hooks;
  std::swap(ctx.saved_hooks, no_hooks);

  for (std::size_t i = 0; i < roots.size(); ++i)
    if (!grads[i].defined()) {
      grads[i] = empty_like(ctx, roots[i], Op::ones_like);
      fill(ctx, grads[i], 1);
    }
  // The caller's list keeps the gradients alive to the end, as torch.autograd.backward's does.
  const auto root = make_ref<GraphRoot>(grads);
  for (const Tensor& tensor : roots) root->add_edge(tensor);

  Task task;
  tasks_.push_back(&task);
  count_dependencies(*root);
  task.ready.push_back(root.get());
  root->buffer_.resize(0);
  run(ctx, task);
  // The caller's stream waits for those on which gradients were accumulated (GraphTask::exec_post_processing).
  for (const StreamId leaf : task.leaf_streams) wait_stream(ctx, ctx.stream, leaf);
  for (std::size_t i = 0; i < task.callbacks.size(); ++i) task.callbacks[i](ctx);
  tasks_.pop_back();
  std::swap(ctx.saved_hooks, no_hooks);
}

void Engine::queue_callback(std::function<void(Context&)> callback) {
  tasks_.back()->callbacks.push_back(std::move(callback));
}

void Engine::count_dependencies(Node& root) {
  std::vector<Node*> stack{&root};
  std::vector<Node*> reached;
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->edges_) {
      if (!edge.node) continue;
      ++edge.node->dependencies_;
      if (std::exchange(edge.node->seen_, true)) continue;
      stack.push_back(edge.node.get());
      reached.push_back(edge.node.get());
    }
  }
  for (Node* node : reached) node->seen_ = false;
}

void Engine::run(Context& ctx, Task& task) {
  while (!task.ready.empty()) {
    std::pop_heap(task.ready.begin(), task.ready.end(), runs_later);
    const Ref<Node> node(task.ready.back());
    task.ready.pop_back();
    evaluate(ctx, task, *node);
  }
}

void Engine::evaluate(Context& ctx, Task& task, Node& node) {
  Grads outputs;
  const Scoped stream(ctx.stream, node.stream_);
  const Scoped module(ctx.module, node.sequence_ == Node::kRunFirst ? ctx.module : node.module_);
  {
    Grads inputs = std::move(node.buffer_);
    for (const PreHook& hook : node.pre_hooks_) hook(ctx, inputs);
    outputs = node.backward(ctx, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Edge& edge = node.edges_[i];
      if (edge.node && outputs[i].defined()) fit(ctx, outputs[i], edge.node->inputs_[edge.slot]);
    }
    for (const PostHook& hook : node.post_hooks_) hook(ctx);
  }
  node.release();
  if (node.edges_.empty() && std::ranges::find(task.leaf_streams, node.stream_) == task.leaf_streams.end())
    task.leaf_streams.push_back(node.stream_);

  outputs.resize(node.edges_.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Edge& edge = node.edges_[i];
    if (!edge.node) continue;
    Node& next = *edge.node;
    next.buffer_.resize(next.inputs_.size());
    if (outputs[i].defined()) {
      if (next.stream_ != node.stream_) {  // InputBuffer::add
        wait_stream(ctx, next.stream_, node.stream_);
        outputs[i].storage().record_stream(next.stream_);
      }
      const Scoped consumer(ctx.stream, next.stream_);
      add_to_buffer(ctx, next.buffer_[edge.slot], std::move(outputs[i]));
    }
    if (--next.dependencies_ == 0) {
      task.ready.push_back(&next);
      std::push_heap(task.ready.begin(), task.ready.end(), runs_later);
    }
  }
}

// Added in place if nobody else holds what has arrived before, else into a new tensor. A view holds on to its base, so
// it never owns its storage alone.
void Engine::add_to_buffer(Context& ctx, Tensor& slot, Tensor grad) {
  if (!slot.defined()) {
    slot = std::move(grad);
    return;
  }
  const bool shared = slot.impl()->is_view || slot.use_count() > 1 || slot.impl()->storage->use_count() > 1;
  const Tensor sum = shared ? empty_for(ctx, slot, grad, promote(slot, grad), Op::add) : slot;
  compute(ctx, Binary::add, sum, slot, grad);
  slot = sum;
}

}  // namespace qlp

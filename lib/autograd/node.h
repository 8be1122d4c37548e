// The graph that the forward pass leaves behind: nodes that turn gradients of results into gradients of operands.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/inline_vector.h"
#include "base/ref.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace qlp {

class Node;
using Grads = InlineVector<Tensor, 3>;

/// Where a gradient goes: input `slot` of a node; no node where none is wanted.
struct Edge {
  Ref<Node> node;
  std::uint32_t slot = 0;
};

/// Called with the gradients that are about to enter a node (torch.Tensor.register_hook).
using PreHook = std::function<void(Context&, Grads& grads)>;
/// Called after a node has run (Node.register_hook on an AccumulateGrad).
using PostHook = std::function<void(Context&)>;

class Node : public RefCounted {
 public:
  /// What an incoming gradient must look like; the engine sums and casts it to that.
  struct InputMeta {
    Shape shape;
    DType dtype;
  };
  static constexpr std::uint64_t kRunFirst = std::numeric_limits<std::uint64_t>::max();

  /// A node of the operation that runs now; later ones run earlier in the backward pass.
  explicit Node(Context& ctx) : sequence_(ctx.take_sequence()), stream_(ctx.stream), module_(ctx.module) {}
  ~Node() override;

  /// Gradients of the operands, in the order of `edges()`; one may stay undefined. `grads` are those of the results.
  virtual Grads backward(Context& ctx, Grads& grads) = 0;
  /// Drops what was saved; called by the engine when the node has run.
  virtual void release() {}

  void add_edge(const Tensor& operand);
  bool wants(std::size_t i) const { return static_cast<bool>(edges_[i].node); }

  std::uint64_t sequence() const { return sequence_; }
  /// The stream on which it was made, and on which it runs in the backward pass.
  StreamId stream() const { return stream_; }
  /// The module that was running when the node was made, for labels.
  std::uint32_t module() const { return module_; }
  InlineVector<Edge, 3>& edges() { return edges_; }
  InlineVector<InputMeta, 1>& inputs() { return inputs_; }
  std::vector<PreHook>& pre_hooks() { return pre_hooks_; }
  std::vector<PostHook>& post_hooks() { return post_hooks_; }

 protected:
  /// A node outside of the order of operations: it runs as soon as it can.
  explicit Node(StreamId stream = 0) : sequence_(kRunFirst), stream_(stream) {}

 private:
  friend class Engine;
  std::uint64_t sequence_;
  StreamId stream_;
  std::uint32_t module_ = 0;
  std::uint32_t dependencies_ = 0;  ///< of the backward pass that runs: nodes that have yet to send a gradient
  bool seen_ = false;
  InlineVector<Edge, 3> edges_;
  InlineVector<InputMeta, 1> inputs_;
  Grads buffer_;  ///< gradients that have arrived
  std::vector<PreHook> pre_hooks_;
  std::vector<PostHook> post_hooks_;
};

/// What autograd keeps on a tensor.
struct AutogradData final : AutogradMeta {
  Ref<Node> grad_fn;  ///< none on a leaf
  std::uint32_t slot = 0;
  Node* accumulator = nullptr;  ///< of a leaf, while some graph holds it
  Tensor grad;
  /// Of a leaf that is a rank's part of a tensor, where .grad is that of the whole tensor on every rank: its shape.
  std::optional<Shape> whole_grad;
  std::vector<PreHook> leaf_hooks;
  std::vector<PostHook> post_accumulate_hooks;  ///< of a leaf, after its .grad has changed
};

AutogradData& autograd_data(const Tensor& tensor);
bool is_leaf(const Tensor& tensor);
/// Marks a leaf as one whose gradient is wanted.
void set_requires_grad(const Tensor& leaf, bool requires_grad);
const Tensor& grad_of(const Tensor& leaf);
void set_grad(const Tensor& leaf, Tensor grad);
/// `tensor.data = data`: the same tensor on other memory, outside of autograd. A leaf whose dtype changes forgets its
/// AccumulateGrad (VariableHooks::set_data in torch/csrc/autograd/variable.cpp).
void set_data(const Tensor& tensor, const Tensor& data);
/// The edge on which the gradient of this tensor travels; of a leaf, its AccumulateGrad, which is made on `stream` if
/// there is none.
Edge gradient_edge(const Tensor& tensor, StreamId stream = 0);
/// Calls `hook` with the gradient of `tensor` before the node that takes it runs.
void register_hook(const Tensor& tensor, PreHook hook);

/// Calls `hook` when .grad of `leaf` has been set or added to (torch.Tensor.register_post_accumulate_grad_hook). A
/// gradient that was taken over is then held by .grad alone.
void register_post_accumulate_hook(const Tensor& leaf, PostHook hook);

/// True if an operation on these operands must be recorded.
template <class... Operands>
bool records(const Context& ctx, const Operands&... operands) {
  return ctx.grad_enabled && !ctx.abandoned && (... || (operands.defined() && operands.requires_grad()));
}

/// Makes `result` the next result of `node`.
void set_history(const Tensor& result, const Ref<Node>& node);

}  // namespace qlp

// The backward pass: runs the nodes in PyTorch's order (torch/csrc/autograd/engine.cpp, input_buffer.cpp).
#pragma once

#include <functional>
#include <vector>

#include "autograd/node.h"

namespace qlp {

/// One backward pass at a time, and those that a node starts from within (reentrant checkpointing).
class Engine {
 public:
  /// Runs backward from `roots`; where `grads` has no tensor, a 0-dim loss gets its 1.
  void backward(Context& ctx, const std::vector<Tensor>& roots, std::vector<Tensor> grads);
  /// Calls `callback` when the backward pass that is running now has run all its nodes (queue_callback).
  void queue_callback(std::function<void(Context&)> callback);
  bool running() const { return !tasks_.empty(); }

 private:
  struct Task {
    std::vector<Node*> ready;  ///< a heap
    std::vector<std::function<void(Context&)>> callbacks;
    std::vector<StreamId> leaf_streams;  ///< on which nodes without edges have run
  };
  void count_dependencies(Node& root);
  void run(Context& ctx, Task& task);
  void evaluate(Context& ctx, Task& task, Node& node);
  static void add_to_buffer(Context& ctx, Tensor& slot, Tensor grad);

  std::vector<Task*> tasks_;
};

}  // namespace qlp

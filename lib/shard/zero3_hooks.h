// What ZeRO stage 3 does around every module, forward and backward (deepspeed/runtime/zero/parameter_offload.py,
// 0.18.3).
#pragma once

#include <functional>

#include "autograd/zero3_linear.h"
#include "shard/zero3_coordinator.h"

namespace qlp {

/// torch.nn.functional.linear is DeepSpeed's (zero.Init), in modules that have hooks and in those below a leaf, which
/// have none.
class Zero3LinearHooks : public ForwardHooks {
 public:
  Tensor pre_forward(Context& ctx, Module& module, Tensor input) override;
  Tensor post_forward(Context& ctx, Module& module, Tensor output) override;

  bool replaces_linear = false;

 private:
  bool replaces_linear_of(const Module& module) const;

  Zero3LinearFunction linear_;
};

class Zero3Hooks final : public Zero3LinearHooks {
 public:
  /// Told when the backward pass has left a leaf.
  using LeafObserver = std::function<void(Context&, const Module& leaf)>;
  Zero3Hooks(Zero3Coordinator& coordinator, LeafObserver on_leaf)
      : coordinator_(coordinator), on_leaf_(std::move(on_leaf)) {}

  Tensor pre_forward(Context& ctx, Module& module, Tensor input) override;
  Tensor post_forward(Context& ctx, Module& module, Tensor output) override;
  /// Of an MLP and of a layer with an adapter: the result of an activation function, of dropout or of nn.Identity,
  /// which are modules with hooks of their own. A parameter of another module: it is gathered.
  Tensor further_input(Context& ctx, Module& module, Tensor input) override;
  /// `output` with a hook behind it that fetches for `module`; null for one that has no object here.
  Tensor before_backward(Context& ctx, const Module* module, Tensor output);

  /// Between the hooks of the whole model: what modules read of each other is gathered only then.
  bool in_forward = false;

 private:
  Zero3Coordinator& coordinator_;
  LeafObserver on_leaf_;
};

}  // namespace qlp

#include "shard/zero3_hooks.h"

#include <utility>

#include "autograd/record.h"

namespace qlp {
namespace {

/// `tensor` with `node` behind it.
Tensor put_behind(const Tensor& tensor, const Ref<Node>& node) {
  node->add_edge(tensor);
  Tensor out = tensor.alias();
  out.impl()->is_view = tensor.impl()->is_view;
  set_history(out, node);
  return out;
}

/// PreBackwardFunctionForModule, PostBackwardFunctionModule: gradients pass, and the coordinator is told.
class BackwardHook final : public Node {
 public:
  enum class When : std::uint8_t { before, after };
  BackwardHook(Context& ctx, When when, Zero3Coordinator& coordinator, const Module* module)
      : Node(ctx), when_(when), coordinator_(coordinator), hooked_(module) {}

  Grads backward(Context& ctx, Grads& grads) override {
    if (when_ == When::before)
      coordinator_.fetch(ctx, hooked_);
    else if (hooked_)
      coordinator_.release(ctx, *hooked_);
    Grads out;
    out.push_back(std::move(grads[0]));
    return out;
  }

  /// `tensor` with this hook behind it.
  static Tensor put(Context& ctx, When when, Zero3Coordinator& coordinator, const Module* module, Tensor tensor) {
    if (!records(ctx, tensor)) return tensor;
    return put_behind(tensor, make_ref<BackwardHook>(ctx, when, coordinator, module));
  }

 private:
  When when_;
  Zero3Coordinator& coordinator_;
  const Module* hooked_;
};

/// register_full_backward_hook of a leaf.
class LeafHook final : public Node {
 public:
  LeafHook(Context& ctx, const Zero3Hooks::LeafObserver& on_leaf, const Module& leaf)
      : Node(ctx), on_leaf_(on_leaf), leaf_(leaf) {}

  Grads backward(Context& ctx, Grads& grads) override {
    on_leaf_(ctx, leaf_);
    Grads out;
    out.push_back(std::move(grads[0]));
    return out;
  }

 private:
  const Zero3Hooks::LeafObserver& on_leaf_;
  const Module& leaf_;
};

using When = BackwardHook::When;

}  // namespace

bool Zero3LinearHooks::replaces_linear_of(const Module& module) const {
  return replaces_linear && (module.kind() == ModuleKind::linear || module.kind() == ModuleKind::lora_matrix);
}

Tensor Zero3LinearHooks::pre_forward(Context& ctx, Module& module, Tensor input) {
  if (replaces_linear_of(module)) ctx.saved_hooks.push_back(&linear_);
  return input;
}

Tensor Zero3LinearHooks::post_forward(Context& ctx, Module& module, Tensor output) {
  if (replaces_linear_of(module)) ctx.saved_hooks.pop_back();
  return output;
}

Tensor Zero3Hooks::pre_forward(Context& ctx, Module& module, Tensor input) {
  coordinator_.fetch(ctx, &module);
  Tensor hooked = BackwardHook::put(ctx, When::after, coordinator_, &module, std::move(input));
  if (is_leaf_module(module) && records(ctx, hooked))
    hooked = put_behind(hooked, make_ref<LeafHook>(ctx, on_leaf_, module));
  return Zero3LinearHooks::pre_forward(ctx, module, std::move(hooked));
}

Tensor Zero3Hooks::post_forward(Context& ctx, Module& module, Tensor output) {
  output = Zero3LinearHooks::post_forward(ctx, module, std::move(output));
  coordinator_.release(ctx, module);
  return BackwardHook::put(ctx, When::before, coordinator_, &module, std::move(output));
}

Tensor Zero3Hooks::before_backward(Context& ctx, const Module* module, Tensor output) {
  return BackwardHook::put(ctx, When::before, coordinator_, module, std::move(output));
}

Tensor Zero3Hooks::further_input(Context& ctx, Module& module, Tensor input) {
  if (const Zero3Param* param = coordinator_.param_of(input)) {
    if (in_forward) coordinator_.read_outside(ctx, module, param->parameter());
    return input;
  }
  if (module.kind() != ModuleKind::mlp && module.kind() != ModuleKind::lora_linear) return input;
  coordinator_.fetch(ctx, nullptr);
  return before_backward(ctx, nullptr, std::move(input));
}

}  // namespace qlp

#include "shard/zero3_hooks.h"

#include <utility>

#include "autograd/record.h"

namespace qlp {
namespace {

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
    const auto node = make_ref<BackwardHook>(ctx, when, coordinator, module);
    node->add_edge(tensor);
    Tensor out = tensor.alias();
    out.impl()->is_view = tensor.impl()->is_view;
    set_history(out, node);
    return out;
  }

 private:
  When when_;
  Zero3Coordinator& coordinator_;
  const Module* hooked_;
};

using When = BackwardHook::When;

}  // namespace

bool Zero3Hooks::replaces_linear_of(const Module& module) const {
  return replaces_linear && (module.kind() == ModuleKind::linear || module.kind() == ModuleKind::lora_matrix);
}

Tensor Zero3Hooks::pre_forward(Context& ctx, Module& module, Tensor input) {
  coordinator_.fetch(ctx, &module);
  Tensor hooked = BackwardHook::put(ctx, When::after, coordinator_, &module, std::move(input));
  if (replaces_linear_of(module)) ctx.saved_hooks.push_back(&linear_);
  return hooked;
}

Tensor Zero3Hooks::post_forward(Context& ctx, Module& module, Tensor output) {
  if (replaces_linear_of(module)) ctx.saved_hooks.pop_back();
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

#include "shard/zero_engine.h"

#include "autograd/engine.h"
#include "autograd/node.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// register_output_backward_hooks, _backward_prologue_per_tensor: grad / gradient_accumulation_steps, a new tensor.
void divide_gradient_of(const Tensor& output, double weight) {
  if (!output.defined() || !output.requires_grad()) return;
  register_hook(output, [weight](Context& ctx, Grads& grads) {
    const Tensor share = empty_like(ctx, grads[0], Op::div);
    compute(ctx, Unary::mul, share, grads[0], weight);
    grads[0] = share;
  });
}

bool casts(const Tensor& tensor, DType dtype) {
  return tensor.defined() && is_floating(tensor.dtype()) && tensor.dtype() != dtype;
}

}  // namespace

CausalLmOutput ZeroEngine::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                   const Tensor& num_items, const RunOptions& options) {
  CausalLmOutput output = model.forward(ctx, ids, labels, num_items, options);
  divide_gradients(output, options.loss_weight);
  return output;
}

void ZeroEngine::divide_gradients(const CausalLmOutput& output, double weight) {
  divide_gradient_of(output.loss, weight);
  divide_gradient_of(output.logits, weight);
}

void ZeroEngine::prepare_engine(Context& ctx, CausalLm& model, const ZeroOptions& options) {
  if (options.module_dtype) cast_module(ctx, model, *options.module_dtype);
  // What the engine puts off until now. NOLINTNEXTLINE(bugprone-parent-virtual-call)
  ShardingRuntime::place_model(ctx, model);
  for (const Parameter* parameter : model.parameters()) broadcast(ctx, options.group(), parameter->tensor);
  if (options.has_kernel_flag) make_kernel_flag(ctx);
  if (options.makes_first_sums) make_first_sums(ctx, model);
}

StateDict ZeroEngine::host_copies(Context& ctx, CausalLm& model) {
  // Not what a stage makes of it, which is this. NOLINTNEXTLINE(bugprone-parent-virtual-call)
  const StateDict on_device = ShardingRuntime::state_dict(ctx, model, true);
  StateDict out;
  for (const StateDictEntry& entry : on_device.entries) {
    if (const auto& quant = entry.parameter->quant)
      for (const Tensor& statistics : {quant->absmax, quant->code, quant->nested_absmax, quant->nested_code})
        if (statistics.defined()) out.clones.push_back(to_host(ctx, statistics));
    out.entries.push_back({entry.parameter, to_host(ctx, entry.tensor)});
  }
  return out;
}

void ZeroEngine::make_kernel_flag(Context& ctx) {
  const Scoped category(ctx.category, Category::workspace);
  kernel_flag_ = empty(ctx, {1}, DType::int32, Op::input);
  fill(ctx, kernel_flag_, 0);
}

void ZeroEngine::make_first_sums(Context& ctx, CausalLm& model) {
  const Scoped category(ctx.category, Category::optimizer_state);
  for (const Parameter* parameter : model.parameters()) {
    if (!parameter->trainable) continue;
    first_sums_.push_back(empty_like(ctx, parameter->tensor, Op::optimizer_state));
    fill(ctx, first_sums_.back(), 0);
  }
}

void ZeroEngine::backward(Context& ctx, const Tensor& loss, Optimizer& optimizer) {
  {
    const Tensor root = scaled(ctx, loss);  // by a Python number
    ctx.engine.backward(ctx, {root}, {Tensor()});
    finish_backward(ctx);
  }
  if (boundary_) step(ctx, optimizer);
}

void cast_module(Context& ctx, Module& module, DType dtype) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  for (Module* child : module.children()) cast_module(ctx, *child, dtype);
  const auto cast = [&](const Tensor& tensor) {
    const Scoped category(ctx.category, tensor.storage().label().category);
    Tensor out = empty_like(ctx, tensor, dtype, Op::to_copy);
    copy_into(ctx, out, tensor);
    return out;
  };
  for (const auto& parameter : module.own_parameters())
    if (casts(parameter->tensor, dtype)) set_data(parameter->tensor, cast(parameter->tensor));
  for (const ModuleBuffer& buffer : module.own_buffers())
    if (casts(*buffer.tensor, dtype)) *buffer.tensor = cast(*buffer.tensor);
}

}  // namespace qlp

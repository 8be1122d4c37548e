#include "shard/fsdp1_tree.h"

#include <utility>

#include "autograd/engine.h"
#include "autograd/pointwise.h"
#include "optim/clip_grad_norm.h"
#include "shard/coalesced.h"
#include "shard/sharding_runtime.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"
#include "tensor/wait_stream.h"

namespace qlp {

Fsdp1Tree::Fsdp1Tree(Context& ctx, Module& root, const WrappedModules& wrapped, const Fsdp1Options& options,
                     std::vector<Tensor*> buffers)
    : buffers_(std::move(buffers)) {
  shared_.options = options;
  shared_.begin_backward = [this](Context& c) { begin_backward(c); };
  for (Module* child : root.children()) wrap(ctx, *child, wrapped);
  make_unit(ctx, root, true);
  if (const auto unit = by_module_.find(&root); unit != by_module_.end()) root_ = unit->second.get();
  root.visit([&](Module& module) {
    if (const auto unit = by_module_.find(&module); unit != by_module_.end()) units_.push_back(unit->second.get());
  });
  if (!options.upcasts_trained) return;
  for (Fsdp1Unit* unit : units_)
    if (unit->handle().trained() && unit->handle().flat().dtype() != DType::float32) unit->handle().upcast(ctx);
}

/// _recursive_wrap: children first.
void Fsdp1Tree::wrap(Context& ctx, Module& module, const WrappedModules& wrapped) {
  for (Module* child : module.children()) wrap(ctx, *child, wrapped);
  if (wrapped.contains(&module)) make_unit(ctx, module, false);
}

void Fsdp1Tree::make_unit(Context& ctx, Module& module, bool is_root) {
  // A leaf with a trained copy of its weight beside the frozen original: the copy is a module of its own.
  const bool is_leaf = module.children().empty() && shared_.options.wraps_trained_leaves;
  std::vector<Parameter*> parameters;
  for (Parameter* parameter : module.parameters())
    if ((!is_leaf || parameter->trainable) && managed_.insert(parameter).second) parameters.push_back(parameter);
  for (Parameter* parameter : parameters) parameter->tensor = to_device(ctx, parameter->tensor);
  move_buffers(ctx, module);
  if (parameters.empty()) return;
  if (shared_.options.syncs_module_states) sync_states(ctx, module, parameters);
  auto unit = std::make_unique<Fsdp1Unit>(std::make_unique<FlatParamHandle>(ctx, parameters, shared_.options), shared_,
                                          is_root);
  if (!is_root) module.set_hooks(unit.get());
  by_module_.emplace(&module, std::move(unit));
}

/// _sync_module_params_and_buffers (_init_utils.py): buffers that have not been sent before, then the parameters.
void Fsdp1Tree::sync_states(Context& ctx, Module& module, const std::vector<Parameter*>& parameters) {
  std::vector<Tensor> states;
  module.visit([&](Module& below) {
    for (const ModuleBuffer& buffer : below.own_buffers())
      if (synced_.insert(buffer.tensor).second) states.push_back(*buffer.tensor);
  });
  for (const Parameter* parameter : parameters) states.push_back(parameter->tensor);
  broadcast_coalesced(ctx, states, shared_.options.group());
  if (shared_.options.hybrid) broadcast_coalesced(ctx, states, shared_.options.replica_group());
}

/// A unit is on the host, or gathered, while those below it are gathered, and is cloned when they are done.
void Fsdp1Tree::gather_state(Context& ctx, Module& module, const StateRequest& request, StateDict& out) {
  const auto unit = by_module_.find(&module);
  FlatParamHandle* handle = unit == by_module_.end() ? nullptr : &unit->second->handle();
  if (handle != nullptr) {
    ctx.device.synchronize();
    using Summoned = FlatParamHandle::Summoned;
    handle->summon(ctx, request.in_chunks ? Summoned::on_device
                        : request.keeps   ? Summoned::on_host
                                          : Summoned::nowhere);
  }
  // Without original parameters a weight is a plain view, which knows nothing of its quant state.
  for (const auto& parameter : module.own_parameters())
    if (shared_.options.use_orig_params && parameter->quant && parameter->quant->double_quant)
      out.clones.push_back(empty_like(ctx, parameter->quant->nested_code, Op::clone));
  for (Module* child : module.children()) gather_state(ctx, *child, request, out);
  if (handle == nullptr) return;
  if (request.in_chunks)
    handle->chunk_parameters(ctx, request.named_twice, out.entries);
  else if (request.keeps)
    handle->clone_parameters(ctx, request.named_twice, out.entries);
  handle->dismiss(ctx);
}

/// _lazy_init
void Fsdp1Tree::begin(Context& ctx) {
  if (std::exchange(begun_, true)) return;
  const Scoped no_grad(ctx.grad_enabled, false);
  if (const auto dtype = shared_.options.mixed_precision.buffer_dtype) {
    const Scoped category(ctx.category, Category::parameters);
    for (Tensor* buffer : buffers_) *buffer = to(ctx, *buffer, *dtype);
  }
  for (Fsdp1Unit* unit : units_) unit->handle().init_attributes(ctx);
}

void Fsdp1Tree::set_sync_gradients(Context& ctx, bool sync) {
  if (!sync) begin(ctx);
  shared_.sync_gradients = sync;
}

Tensor Fsdp1Tree::cast_root_input(Context& ctx, const Tensor& input) {
  begin(ctx);
  for (Fsdp1Unit* unit : units_) {
    FlatParamHandle& handle = unit->handle();
    if (shared_.options.forward_prefetch) handle.needs_pre_forward_unshard = true, handle.prefetched = false;
    handle.reset_gradient_if_unused();
  }
  const auto dtype = shared_.options.mixed_precision.param_dtype;
  return dtype && input.defined() && is_floating(input.dtype()) ? to(ctx, input, *dtype) : input;
}

void Fsdp1Tree::pre_forward(Context& ctx, Module& root, const Tensor& input) {
  wait_stream(ctx, fsdp1_stream::kPreUnshard, ctx.stream);  // for the optimizer (_wait_for_computation_stream)
  wait_stream(ctx, fsdp1_stream::kUnshard, ctx.stream);
  if (root_) root_->pre_forward(ctx, root, input);
}

void Fsdp1Tree::post_forward(Context& ctx, const std::vector<Tensor>& outputs) {
  if (!root_) return begin_backward_at(outputs);
  root_->reshard_after_forward(ctx);
  root_->begin_pre_backward_hooks(ctx);
  for (const Tensor& output : outputs) root_->register_pre_backward_hook(ctx, output);
  root_->handle().state = FlatParamHandle::State::idle;
}

/// A root that holds nothing does no more.
void Fsdp1Tree::begin_backward_at(const std::vector<Tensor>& outputs) {
  shared_.final_callback_queued = false;
  for (const Tensor& output : outputs)
    if (output.requires_grad())
      register_hook(output, [this](Context& c, Grads&) {
        if (!shared_.final_callback_queued) begin_backward(c);
      });
}

void Fsdp1Tree::begin_backward(Context& ctx) {
  shared_.final_callback_queued = true;
  ctx.engine.queue_callback([this](Context& c) { end_backward(c); });
  for (Fsdp1Unit* unit : units_) unit->handle().reset_gradient_if_unused();
}

/// _post_backward_final_callback
void Fsdp1Tree::end_backward(Context& ctx) {
  wait_stream(ctx, ctx.stream, fsdp1_stream::kPostBackward);
  if (shared_.options.hybrid) wait_stream(ctx, ctx.stream, fsdp1_stream::kAllReduce);
  if (shared_.sync_gradients && shared_.options.offloads) ctx.device.synchronize();
  shared_.post_forward_order.clear();
  shared_.first_iteration = false;
  for (Fsdp1Unit* unit : units_) unit->finish_backward(ctx);
  shared_.final_callback_queued = false;
}

std::vector<Tensor> Fsdp1Tree::gradients() const {
  std::vector<Tensor> gradients;
  for (Fsdp1Unit* unit : units_)
    for (const Tensor& parameter : unit->handle().parameters())
      if (grad_of(parameter).defined()) gradients.push_back(grad_of(parameter));
  return gradients;
}

Tensor Fsdp1Tree::clip_grad_norm(Context& ctx, double max_norm) {
  const Scoped category(ctx.category, Category::workspace);
  const Scoped no_grad(ctx.grad_enabled, false);
  const auto scalar = [&](Op op) { return empty(ctx, {}, DType::float32, op); };
  const auto of = [&](Op name, Unary op, const Tensor& x, double p = 0) {
    Tensor out = scalar(name);
    compute(ctx, op, out, x, p);
    return out;
  };
  const std::vector<Tensor> gradients = this->gradients();
  // Offloaded gradients are worked on where they are; only the norm that the ranks share is on the device.
  const Place where = shared_.options.offloads ? Place::host : Place::device;
  Tensor local;
  if (!gradients.empty()) {
    const Scoped place(ctx.place, where);
    std::vector<Tensor> norms;
    for (const Tensor& gradient : gradients) {
      norms.push_back(scalar(Op::linear_norm));
      full_reduction_scratch(ctx, gradient.numel(), Op::linear_norm);
      norm_into(ctx, norms.back(), gradient);
    }
    const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(norms.size())}, DType::float32, Op::stack);
    stack_into(ctx, stacked, norms);
    norms.clear();
    local = scalar(Op::linear_norm);
    norm_into(ctx, local, stacked);
  }
  if (local.defined()) local = to_device(ctx, local);
  Tensor total = scalar(Op::pow);
  if (local.defined())
    compute(ctx, Unary::square, total, local);
  else
    fill(ctx, total, 0);
  all_reduce(ctx, shared_.options.group(), total, ReduceOp::sum);
  total = of(Op::pow, Unary::sqrt, total);
  const Scoped place(ctx.place, where);
  if (shared_.options.offloads) {
    total = to_host(ctx, total);
    ctx.device.synchronize();
  }
  Tensor quotient;
  {
    constexpr double kEps = 1e-6;
    const Tensor sum = of(Op::add, Unary::add, total, kEps);
    quotient = of(Op::reciprocal, Unary::reciprocal, sum);
    quotient = of(Op::mul, Unary::mul, quotient, max_norm);
  }
  const Tensor clamped = of(Op::clamp, Unary::at_most, quotient, 1);
  DType dtype = gradients.empty() ? DType::float32 : gradients.front().dtype();
  for (const Tensor& gradient : gradients) {
    const Tensor factor = to(ctx, clamped, gradient.dtype());
    compute(ctx, Binary::mul, gradient, gradient, factor);
    if (gradient.dtype() == DType::float32) dtype = DType::float32;
  }
  return to(ctx, total, dtype);
}

}  // namespace qlp

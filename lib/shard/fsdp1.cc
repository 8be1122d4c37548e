#include "shard/fsdp1.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/pointwise.h"
#include "base/refusal.h"
#include "shard/fsdp1_wrap.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Whether a unit above trains what is in this module. `vectors`: norms and biases count too.
bool trains_in_unit_above(Module& module, const WrappedModules& units, bool vectors) {
  if (units.contains(&module)) return false;
  const auto& own = module.own_parameters();
  const bool has = std::ranges::any_of(
      own, [&](const auto& parameter) { return parameter->trainable && (vectors || parameter->shape.rank() > 1); });
  return has || std::ranges::any_of(module.children(),
                                    [&](Module* child) { return trains_in_unit_above(*child, units, vectors); });
}

/// With the first gradient of a unit it is freed (_runtime_utils.py, _post_backward_hook), and nothing gathers it for
/// the other layers that have weights in it, as its module is not entered again. Without use_orig_params a layer goes
/// on with views of what has been freed: linear layers stop at them, norms read from nowhere.
Diagnostics check_units_of_layers(Module& model, const WrappedModules& units, const Fsdp1Options& options) {
  std::vector<Module*> layers;
  model.visit([&](Module& module) {
    if (module.kind() == ModuleKind::decoder_layer) layers.push_back(&module);
  });
  // The first layer is the last of the backward pass: nothing runs again after it.
  const auto frees_others = [&](Module* layer) { return trains_in_unit_above(*layer, units, options.use_orig_params); };
  if (layers.empty() || std::none_of(layers.begin() + 1, layers.end(), frees_others)) return {};
  return {refusal("fsdp1-reentrant-unit",
                  "several layers have weights in one FSDP1 unit, which checkpointing with reentrance frees after the "
                  "first of them: the others find a storage of size 0, or parts of weights",
                  "auto_wrap_policy", "leave auto_wrap_policy out, or set use_reentrant to false")};
}

}  // namespace

/// A tied head reads the table outside of the unit that gathers it.
Diagnostics Fsdp1Runtime::check(CausalLm& model) const {
  if (passes_by_layer_ && options_.shards)
    if (auto found = check_units_of_layers(model, modules_to_wrap(model, options_), options_); !found.empty())
      return found;
  const bool tied = !model.parts().head->shared_parameters().empty();
  if (!tied || options_.wrap_policy != WrapPolicy::size_based_wrap) return {};
  const auto wrapped = modules_to_wrap(model, options_);
  Module& decoder = *model.children().front();
  if (!wrapped.contains(&decoder) && !wrapped.contains(model.parts().embedding.get())) return {};
  return {refusal("fsdp1-tied-units",
                  "units by size part the embedding from the head that shares its weight, which FSDP1 then cannot run",
                  "auto_wrap_policy", "leave auto_wrap_policy out")};
}

void Fsdp1Runtime::prepare(Context& ctx, CausalLm& model) {
  std::vector<Tensor*> buffers;
  for (const ModuleBuffer& buffer : model.buffers()) buffers.push_back(buffer.tensor);
  tree_ = std::make_unique<Fsdp1Tree>(ctx, model, modules_to_wrap(model, options_), options_, std::move(buffers));
}

std::vector<TrainedTensor> Fsdp1Runtime::trained(CausalLm& model) {
  std::vector<TrainedTensor> out;
  if (!options_.use_orig_params) {
    for (Fsdp1Unit* unit : tree_->units())
      if (unit->handle().trained())
        for (const auto& [parameter, tensor] : unit->handle().named_parameters())
          out.push_back({parameter, tensor, true});
    return out;
  }
  std::unordered_map<const Parameter*, Tensor> tensors;
  for (Fsdp1Unit* unit : tree_->units())
    for (const auto& [parameter, tensor] : unit->handle().named_parameters()) tensors.emplace(parameter, tensor);
  for (const Parameter* parameter : model.parameters())
    if (parameter->trainable) out.push_back({parameter, tensors.at(parameter)});
  return out;
}

std::vector<Shape> Fsdp1Runtime::frozen(CausalLm& model) {
  if (options_.use_orig_params) return ShardingRuntime::frozen(model);
  std::vector<Shape> out;
  for (Fsdp1Unit* unit : tree_->units())
    if (!unit->handle().trained())
      for (const Tensor& tensor : unit->handle().parameters()) out.push_back(tensor.shape());
  return out;
}

void Fsdp1Runtime::begin_micro_step(Context& ctx, bool sync) { tree_->set_sync_gradients(ctx, sync); }

CausalLmOutput Fsdp1Runtime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                     const Tensor& num_items, const RunOptions& options) {
  const Tensor items = tree_->cast_root_input(ctx, num_items);
  tree_->pre_forward(ctx, model, ids);
  CausalLmOutput output = model.forward(ctx, ids, labels, items, options);
  std::vector<Tensor> outputs{output.loss};
  if (output.logits.defined()) {  // a fused loss leaves none
    const Scoped category(ctx.category, Category::logits_and_loss);
    if (options_.outputs_to_fp32) output.logits = to(ctx, output.logits, DType::float32);
    outputs.push_back(output.logits);
  }
  tree_->post_forward(ctx, outputs);
  return output;
}

Tensor Fsdp1Runtime::clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) {
  if (options_.keeps_zero_scalar && !zero_scalar_.defined()) {
    const Scoped category(ctx.category, Category::workspace);
    zero_scalar_ = empty(ctx, {}, DType::float32, Op::zeros);
  }
  if (options_.shards) return tree_->clip_grad_norm(ctx, max_norm);
  const Scoped place(ctx.place, options_.offloads ? Place::host : Place::device);
  return qlp::clip_grad_norm(ctx, parameters, max_norm);
}

StateDict Fsdp1Runtime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  return gathered(ctx, model, {.keeps = keeps});
}

StateDict Fsdp1Runtime::gathered(Context& ctx, CausalLm& model, Fsdp1Tree::StateRequest request) {
  StateDict out;
  request.named_twice = tied_table(model);
  for (Fsdp1Unit* unit : tree_->units()) unit->handle().reset_gradient_if_unused();
  tree_->gather_state(ctx, model, request, out);
  return out;
}

/// save_fsdp_model and save_fsdp_optimizer (accelerate/utils/fsdp_utils.py, 1.15).
void Fsdp1Runtime::save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                       const TrainingStateRequest& request) {
  {
    const StateDict model_state = gathered(ctx, model, {.keeps = request.first, .in_chunks = request.sharded});
    std::vector<Tensor> chunks;
    for (const StateDictEntry& entry : model_state.entries)
      if (!request.adapter_only || entry.parameter->trainable) chunks.push_back(entry.tensor);
    write_chunks(ctx, chunks);
  }
  Fsdp1OptimizerStates states{.optimizer = &optimizer, .of = {}};
  for (OptimizerEntry& entry : optimizer.state()) {
    const Shape& shape = entry.parameter.shape();
    std::erase_if(entry.state,
                  [&](const Tensor& state) { return state.shape().rank() == 0 || state.shape() != shape; });
    if (entry.state.empty()) continue;
    const TensorImpl* const key = entry.parameter.impl();
    states.of.emplace(key, std::move(entry));
  }
  std::vector<Tensor> state_dict;
  for (Fsdp1Unit* unit : tree_->units())
    if (unit->handle().trained()) unit->handle().gather_optimizer_state(ctx, states, request, state_dict);
  write_chunks(ctx, state_dict);
}

}  // namespace qlp

#include "shard/fsdp2_runtime.h"

#include <utility>

#include "autograd/node.h"
#include "optim/clip_grad_norm.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// What stands in the optimizer for parameters while they are cut (accelerator.py, _prepare_fsdp2).
std::vector<Tensor> placeholders(Context& ctx, CausalLm& model, bool copies) {
  const Scoped category(ctx.category, Category::workspace);
  std::vector<Tensor> out;
  for (const Parameter* parameter : model.parameters())
    if (parameter->trainable) {
      const Scoped place(ctx.place, parameter->tensor.on_host() ? Place::meta : Place::device);
      out.push_back(empty(ctx, copies ? parameter->tensor.shape() : Shape{1}, parameter->tensor.dtype(), Op::empty));
    }
  return out;
}

/// The state dict that is looked at before anything is cut.
std::vector<Tensor> with_clones(Context& ctx, CausalLm& model) {
  const Scoped category(ctx.category, Category::workspace);
  return cloned_nested_codes(ctx, model);
}

/// A partial norm becomes one of all ranks: powers are summed, and the root is taken (_ops/_math_ops.py, _NormPartial).
Tensor summed_over_ranks(Context& ctx, const Tensor& norm, const RankGroup& group) {
  const Tensor power = empty_like(ctx, norm, Op::pow);
  const Tensor sum = empty_like(ctx, power, Op::all_reduce);
  communicate(ctx, Collective::all_reduce, group, sum);
  return empty_like(ctx, sum, Op::pow);
}

}  // namespace

Fsdp2Runtime::Fsdp2Runtime(const Fsdp2Options& options, const Fsdp2Preparation& preparation)
    : preparation_(preparation), fully_shard_(options) {}

void Fsdp2Runtime::prepare(Context& ctx, CausalLm& model) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  const std::vector<Tensor> in_optimizer = placeholders(ctx, model, preparation_.copies_in_optimizer);
  if (preparation_.upcast == Fsdp2Upcast::trained_parameters) upcast_trained(ctx, model);
  const std::vector<Tensor> clones = with_clones(ctx, model);
  fully_shard_.begin(model, [&](const Parameter& p) { return preparation_.ignores_quantized && p.quantize; });
  {
    const Scoped place(ctx.place, preparation_.loads_state_dict ? Place::meta : ctx.place);
    shard_units(ctx, model);
    cast_shards(ctx, model);
  }
  if (preparation_.loads_state_dict) load_state_dict(ctx, model);
  move_buffers(ctx, model);
  fully_shard_.end(model);
}

/// fsdp2_load_full_state_dict: each parameter arrives whole from rank 0, is cut, and goes.
void Fsdp2Runtime::load_state_dict(Context& ctx, CausalLm& model) {
  const Scoped category(ctx.category, Category::communication_buffers);
  std::vector<const Parameter*> state_dict;
  for (const Parameter* parameter : model.parameters()) state_dict.push_back(parameter);
  const Parameter& embedding = model.parts().embedding->weight();
  if (&embedding == &model.parts().head->weight()) state_dict.push_back(&embedding);  // under its other name
  for (const Parameter* parameter : state_dict) {
    Fsdp2Param* shard = fully_shard_.shard_of(*parameter);
    if (!shard) continue;
    const Tensor whole = empty(ctx, parameter->shape, parameter->tensor.dtype(), Op::broadcast);
    communicate(ctx, Collective::broadcast, fully_shard_.options().group(), whole);
    const Tensor earlier = parameter->tensor;
    shard->load(ctx);
  }
}

/// get_model_state_dict: what is unsharded goes first, then each parameter is gathered, copied to the host by the first
/// rank, and dropped (torch/distributed/_state_dict_utils.py, _gather_state_dict). Tied names come out apart.
StateDict Fsdp2Runtime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  fully_shard_.reshard();
  std::vector<const Parameter*> names;
  for (const Parameter* parameter : model.parameters()) names.push_back(parameter);
  const Parameter& embedding = model.parts().embedding->weight();
  if (&embedding == &model.parts().head->weight()) names.push_back(&embedding);
  StateDict out;
  // A DTensor knows nothing of the quant state of what it was made from: only whole weights bring theirs.
  if (preparation_.ignores_quantized) out.clones = with_clones(ctx, model);
  for (const Parameter* parameter : names) {
    const Fsdp2Param* shard = fully_shard_.shard_of(*parameter);
    const Tensor whole = shard ? shard->gathered_for_saving(ctx) : parameter->tensor;
    if (keeps) out.entries.push_back({parameter, to_host(ctx, whole)});
  }
  return out;
}

void Fsdp2Runtime::upcast_trained(Context& ctx, CausalLm& model) const {
  for (Parameter* parameter : model.parameters()) {
    if (!parameter->trainable || parameter->tensor.dtype() == DType::float32) continue;
    const Scoped category(ctx.category, parameter->tensor.storage().label().category);
    parameter->tensor = empty_like(ctx, parameter->tensor, DType::float32, Op::to_copy);
  }
}

void Fsdp2Runtime::shard_units(Context& ctx, CausalLm& model) {
  const bool reshard = preparation_.reshard_after_forward;
  CausalLmParts& parts = model.parts();
  for (const auto& layer : parts.layers) fully_shard_.add(ctx, {layer.get()}, reshard);
  if (!preparation_.splits_root) {
    fully_shard_.add(ctx, {&model}, reshard && fully_shard_.options().behaviour.root_obeys_reshard);
    return;
  }
  const bool tied = &parts.embedding->weight() == &parts.head->weight();
  std::vector<Module*> tail;
  if (preparation_.finds_final_norm) tail.push_back(parts.norm.get());
  if (tied)
    tail.push_back(parts.embedding.get());
  else
    fully_shard_.add(ctx, {parts.embedding.get()}, reshard);
  tail.push_back(parts.head.get());
  fully_shard_.add(ctx, tail, false);
  fully_shard_.add(ctx, {&model}, false);
}

/// model.to(torch.float32): modules below first; a module with a group then pads its new shards. Or the same of trained
/// parameters, with results that nobody keeps.
void Fsdp2Runtime::cast_shards(Context& ctx, Module& module) {
  if (preparation_.upcast == Fsdp2Upcast::none || preparation_.upcast == Fsdp2Upcast::trained_parameters) return;
  for (Module* child : module.children()) cast_shards(ctx, *child);
  for (const auto& parameter : module.own_parameters()) {
    Fsdp2Param* shard = fully_shard_.shard_of(*parameter);
    if (!shard) continue;
    if (preparation_.upcast == Fsdp2Upcast::whole_model)
      shard->cast_shard(ctx, DType::float32);
    else if (parameter->trainable && shard->orig_dtype() != DType::float32)
      scratch(ctx, bytes_of(shard->sharded().shape(), DType::float32).count(), Op::to_copy);
  }
  if (Fsdp2Group* group = fully_shard_.group_of(module))
    for (Fsdp2Param& param : group->params()) param.reset_shard(ctx);
}

void Fsdp2Runtime::begin_micro_step(Context&, bool sync) { fully_shard_.set_reduces(sync); }

CausalLmOutput Fsdp2Runtime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                     const Tensor& num_items, const RunOptions& options) {
  Fsdp2State& root = fully_shard_.root();
  const Tensor items = root.cast_input(ctx, num_items);
  root.pre_forward(ctx, model, ids);
  CausalLmOutput output = model.forward(ctx, ids, labels, items, options);
  root.post_forward(ctx, std::vector<Tensor*>{&output.loss, &output.logits});
  return output;
}

/// Norms of DTensors are partial until somebody needs their value on all ranks.
Tensor Fsdp2Runtime::clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters) {
  const Scoped category(ctx.category, Category::workspace);
  const ReduceNorm reduce = [group = fully_shard_.options().group()](Context& c, const Tensor& norm) {
    return summed_over_ranks(c, norm, group);
  };
  if (fully_shard_.options().behaviour.reduces_norms_first) {
    Tensor norm = total_grad_norm(ctx, parameters, reduce);
    scale_by_norm(ctx, norm);
    return norm;
  }
  Tensor norm = total_grad_norm(ctx, parameters);
  scale_by_norm(ctx, norm, reduce);
  return norm;
}

}  // namespace qlp

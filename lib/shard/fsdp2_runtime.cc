#include "shard/fsdp2_runtime.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograd/node.h"
#include "optim/clip_grad_norm.h"
#include "optim/mesh_norm.h"
#include "optim/weight_decay.h"
#include "shard/fsdp2_units.h"
#include "shard/full_tensor.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

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

/// What goes on holding parameters as they were while accelerate cuts them: the state dict, which goes with the frame
/// of fsdp2_prepare_model (fsdp_utils.py); after it what its variables name: embedding and head, where these have units
/// of their own; last the parameter that the loop over the optimizer ended at (accelerator.py, _prepare_fsdp2).
FullyShard::Holders holders_of(CausalLm& model, bool names_tables) {
  FullyShard::Holders holders;
  std::vector<Parameter*> decaying, others;
  const CausalLmParts& parts = model.parts();
  const bool names_copy = parts.embedding && parts.embedding->tokens();  // of the embedding
  const Parameter* const embedding = parts.embedding && !names_copy ? &parts.embedding->weight() : nullptr;
  const Parameter* const head = parts.head ? &parts.head->weight() : nullptr;
  for (Parameter* parameter : model.parameters()) {
    const bool named = names_tables && (parameter == embedding || parameter == head);
    (named ? holders.variables : holders.state_dict).push_back(parameter);
    if (parameter->trainable) (has_weight_decay(*parameter, false) ? decaying : others).push_back(parameter);
  }
  const auto& last_group = others.empty() ? decaying : others;
  if (last_group.empty()) return holders;
  std::erase(holders.state_dict, last_group.back());
  std::erase(holders.variables, last_group.back());
  holders.variables.push_back(last_group.back());
  return holders;
}

/// parameter.data = parameter.data.to(torch.float32)
void cast_to_float(Context& ctx, Parameter& parameter) {
  if (parameter.tensor.dtype() == DType::float32) return;
  const Scoped category(ctx.category, parameter.tensor.storage().label().category);
  const bool requires_grad = parameter.tensor.requires_grad();
  const Tensor cast = empty_like(ctx, parameter.tensor, DType::float32, Op::to_copy);
  copy_into(ctx, cast, parameter.tensor);
  parameter.tensor = cast;
  set_requires_grad(parameter.tensor, requires_grad);
}

/// The state dict that is looked at before anything is cut.
std::vector<Tensor> with_clones(Context& ctx, CausalLm& model) {
  const Scoped category(ctx.category, Category::workspace);
  return cloned_nested_codes(ctx, model);
}

}  // namespace

Fsdp2Runtime::Fsdp2Runtime(const Fsdp2Options& options, const Fsdp2Preparation& preparation,
                           const Fsdp2Options& of_experts)
    : preparation_(preparation), fully_shard_(options, of_experts) {}

void Fsdp2Runtime::prepare(Context& ctx, CausalLm& model) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  if (preparation_.cut_at_load) {
    adopt_units(ctx, model);
    return;
  }
  const std::vector<Tensor> in_optimizer = placeholders(ctx, model, preparation_.copies_in_optimizer);
  if (preparation_.upcast == Fsdp2Upcast::trained_parameters) upcast_trained(ctx, model);
  const std::vector<Tensor> clones = with_clones(ctx, model);
  move_ignored(ctx, model);
  fully_shard_.begin(holders_of(model, preparation_.splits_root),
                     [&](const Parameter& parameter) { return ignores(parameter); });
  Tensor asked_for;
  {
    const Scoped place(ctx.place, preparation_.loads_state_dict ? Place::meta : ctx.place);
    asked_for = shard_units(ctx, model);
    cast_shards(ctx, model);
  }
  if (preparation_.loads_state_dict) {
    load_state_dict(ctx, model);
    move_buffers(ctx, model);
  }
  asked_for.reset();
  fully_shard_.end(model);
  set_prefetch(model);
}

/// A tied head is not in the unit of the embedding: the root gathers the table once more.
void Fsdp2Runtime::adopt_units(Context& ctx, CausalLm& model) {
  fully_shard_.begin(holders_of(model, false), [](const Parameter&) { return false; });
  const auto units = fsdp2_units_at_load(model, preparation_.reshard_after_forward);
  CausalLmParts& parts = model.parts();
  if (tied_table(model)) {
    parts.embedding->untie();
    static_cast<Linear&>(*parts.head).untie();
  }
  for (const Fsdp2Unit& unit : units) fully_shard_.adopt(ctx, unit.modules, unit.reshard_after_forward, unit.experts);
  fully_shard_.end(model);
  set_prefetch(model);
}

/// A tensor that two parameters share is trained once.
std::vector<TrainedTensor> Fsdp2Runtime::trained(CausalLm& model) {
  std::vector<TrainedTensor> out;
  std::unordered_set<const TensorImpl*> known;
  for (TrainedTensor& next : ShardingRuntime::trained(model)) {
    if (!known.insert(next.tensor.impl()).second) continue;
    if (const Fsdp2Param* shard = fully_shard_.shard_of(*next.parameter))
      next.whole = shard->whole_shape(), next.first_row = shard->first_row();
    out.push_back(std::move(next));
  }
  return out;
}

bool Fsdp2Runtime::ignores(const Parameter& parameter) const {
  return is_ignored(preparation_.ignored, parameter.trainable, parameter.quantize);
}

/// get_parameters_from_modules (accelerate/utils/other.py) puts what is ignored on the GPU.
void Fsdp2Runtime::move_ignored(Context& ctx, CausalLm& model) const {
  for (Parameter* parameter : model.parameters())
    if (ignores(*parameter)) parameter->tensor = to_device(ctx, parameter->tensor);
}

/// fsdp2_load_full_state_dict: each parameter arrives whole from rank 0, is cut, and goes.
void Fsdp2Runtime::load_state_dict(Context& ctx, CausalLm& model) {
  const Scoped category(ctx.category, Category::communication_buffers);
  std::vector<const Parameter*> state_dict;
  for (const Parameter* parameter : model.parameters()) state_dict.push_back(parameter);
  if (const Parameter* table = tied_table(model)) state_dict.push_back(table);  // under its other name
  for (const Parameter* parameter : state_dict) {
    Fsdp2Param* shard = fully_shard_.shard_of(*parameter);
    if (!shard) continue;
    const Tensor whole = empty(ctx, parameter->shape, parameter->tensor.dtype(), Op::broadcast);
    copy_into(ctx, whole, fully_shard_.whole(*parameter));
    broadcast(ctx, fully_shard_.options().world(), whole);
    const Tensor earlier = parameter->tensor;
    shard->load(ctx, whole);
  }
}

/// A DTensor knows nothing of the quant state of what it was made from: only whole weights bring theirs.
std::vector<Tensor> Fsdp2Runtime::clones_of_whole(Context& ctx, CausalLm& model) const {
  const bool keeps_whole =
      preparation_.ignored == Fsdp2Ignored::quantized || preparation_.ignored == Fsdp2Ignored::base;
  return keeps_whole ? with_clones(ctx, model) : std::vector<Tensor>{};
}

/// Of what ranks share by layers too, rows are gathered first, unless those are not what is shared there.
Tensor Fsdp2Runtime::whole_of(Context& ctx, const Parameter& parameter) const {
  const Fsdp2Param* shard = fully_shard_.shard_of(parameter);
  Tensor whole = shard ? shard->sharded() : parameter.tensor;
  const bool of_layers = parameter.parts > 1, of_columns = of_layers && parameter.cut_dim > 0;
  if (of_columns) whole = full_tensor(ctx, parameter, whole);
  if (shard) whole = shard->gathered(ctx, whole);
  return of_layers && !of_columns ? full_tensor(ctx, parameter, whole) : whole;
}

/// get_model_state_dict: what is unsharded goes first, then each parameter is gathered, copied to the host by the first
/// rank, and dropped (torch/distributed/_state_dict_utils.py, _gather_state_dict). Tied names come out apart.
StateDict Fsdp2Runtime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  fully_shard_.reshard(ctx);
  std::vector<const Parameter*> names;
  for (const Parameter* parameter : model.parameters()) names.push_back(parameter);
  if (const Parameter* table = tied_table(model)) names.push_back(table);
  StateDict out;
  out.clones = clones_of_whole(ctx, model);
  for (const Parameter* parameter : names) {
    const Tensor whole = whole_of(ctx, *parameter);
    if (keeps) out.entries.push_back({parameter, to_host(ctx, whole)});
  }
  return out;
}

void Fsdp2Runtime::upcast_trained(Context& ctx, CausalLm& model) const {
  for (Parameter* parameter : model.parameters())
    if (parameter->trainable) cast_to_float(ctx, *parameter);
}

/// fsdp2_prepare_model asks for the weight of the embedding once the layers are cut, and of a table with rows that are
/// trained by themselves PEFT makes a copy (peft/utils/other.py, __getattr__): which is given back.
Tensor Fsdp2Runtime::shard_units(Context& ctx, CausalLm& model) {
  Embedding* const embedding = model.parts().embedding.get();
  const TokenDelta* const tokens = embedding && preparation_.splits_root ? embedding->tokens() : nullptr;
  Tensor asked_for;
  for (const Fsdp2Unit& unit : fsdp2_units(model, preparation_, fully_shard_.options().behaviour)) {
    if (tokens && !is_wrapped(*unit.modules.front(), preparation_) && !asked_for.defined()) {
      const Scoped grad_mode(ctx.grad_enabled, true);
      const Scoped category(ctx.category, Category::workspace);
      asked_for = tokens->merged(ctx, embedding->original().tensor);
    }
    fully_shard_.add(ctx, unit.modules, unit.reshard_after_forward);
  }
  return asked_for;
}

/// As in pytorch/examples distributed/FSDP2/example.py: the last layers, or the first, are left to the default.
void Fsdp2Runtime::set_prefetch(CausalLm& model) const {
  std::vector<Fsdp2State*> layers;
  for (const auto& layer : model.parts().layers)
    if (Fsdp2State* state = fully_shard_.state_of(*layer)) layers.push_back(state);
  const auto count = static_cast<std::int64_t>(layers.size());
  const auto from = [&](std::int64_t i, std::int64_t step, std::int64_t ahead) {
    std::vector<Fsdp2State*> next;
    for (std::int64_t j = 1; j <= ahead; ++j) next.push_back(layers[static_cast<std::size_t>(i + j * step)]);
    return next;
  };
  const std::int64_t forward = preparation_.forward_prefetch, backward = preparation_.backward_prefetch;
  for (std::int64_t i = 0; i < count; ++i) {
    Fsdp2State& layer = *layers[static_cast<std::size_t>(i)];
    if (i < count - forward) layer.set_forward_prefetch(from(i, 1, forward));
    if (i >= backward) layer.set_backward_prefetch(from(i, -1, backward));
  }
}

/// model.to(torch.float32): modules below first; a module with a group then pads its new shards. Or the same of trained
/// parameters, with results that nobody keeps.
void Fsdp2Runtime::cast_shards(Context& ctx, Module& module) {
  if (preparation_.upcast == Fsdp2Upcast::none || preparation_.upcast == Fsdp2Upcast::trained_parameters) return;
  for (Module* child : module.children()) cast_shards(ctx, *child);
  for (const auto& parameter : module.own_parameters()) {
    Fsdp2Param* shard = fully_shard_.shard_of(*parameter);
    if (!shard && ignores(*parameter) && preparation_.upcast == Fsdp2Upcast::whole_model)
      cast_to_float(ctx, *parameter);
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
  if (preparation_.cut_at_load && !std::exchange(initialized_, true)) fully_shard_.pad_shards(ctx);
  const Tensor items = root.cast_input(ctx, num_items);
  wait_stream(ctx, kCopyInStream, ctx.stream);  // for the optimizer
  const Tensor input = root.pre_forward(ctx, model, ids);
  CausalLmOutput output = model.forward(ctx, input, labels, items, options);
  std::vector<Tensor*> outputs;  // a fused loss leaves no logits, a stage of a pipeline hidden states alone
  for (Tensor* tensor : {&output.loss, &output.logits, &output.hidden})
    if (tensor->defined()) outputs.push_back(tensor);
  root.post_forward(ctx, outputs);
  return output;
}

/// Norms of DTensors are partial until somebody needs their value on all ranks.
Tensor Fsdp2Runtime::clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) {
  const Scoped category(ctx.category, Category::workspace);
  const Scoped place(ctx.place, fully_shard_.options().cpu_offload ? Place::host : ctx.place);
  if (preparation_.ignored == Fsdp2Ignored::adapter) return qlp::clip_grad_norm(ctx, parameters, max_norm);
  const ReduceNorm reduce = [axes = shard_axes(LayerMesh::none)](Context& c, const Tensor& norm) {
    return summed_over_ranks(c, norm, axes);
  };
  if (fully_shard_.options().behaviour.reduces_norms_first) {
    Tensor norm = total_grad_norm(ctx, parameters, reduce);
    scale_by_norm(ctx, parameters, norm, max_norm);
    return norm;
  }
  Tensor norm = total_grad_norm(ctx, parameters);
  scale_by_norm(ctx, parameters, norm, max_norm, reduce);
  return norm;
}

}  // namespace qlp

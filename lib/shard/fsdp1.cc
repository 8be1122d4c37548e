#include "shard/fsdp1.h"

#include <unordered_map>

#include "autograd/pointwise.h"
#include "tensor/factories.h"

namespace qlp {

bool Fsdp1Runtime::is_unit(Module& module) const {
  if (module.kind() == ModuleKind::decoder_layer) return true;
  if (!options_.wraps_trained_leaves || !module.children().empty()) return false;
  for (const auto& parameter : module.own_parameters())
    if (parameter->trainable) return true;
  return false;
}

void Fsdp1Runtime::prepare(Context& ctx, CausalLm& model) {
  move_buffers(ctx, model);
  std::vector<Tensor*> buffers;
  for (const ModuleBuffer& buffer : model.buffers()) buffers.push_back(buffer.tensor);
  tree_ = std::make_unique<Fsdp1Tree>(
      ctx, model, [this](Module& module) { return is_unit(module); }, options_, std::move(buffers));
}

std::vector<TrainedTensor> Fsdp1Runtime::trained(CausalLm& model) {
  std::vector<TrainedTensor> out;
  if (!options_.use_orig_params) {
    for (Fsdp1Unit* unit : tree_->units())
      if (unit->handle().trained())
        for (const auto& [parameter, tensor] : unit->handle().named_parameters()) out.push_back({parameter, tensor});
    return out;
  }
  std::unordered_map<const Parameter*, Tensor> tensors;
  for (Fsdp1Unit* unit : tree_->units())
    for (const auto& [parameter, tensor] : unit->handle().named_parameters()) tensors.emplace(parameter, tensor);
  for (const Parameter* parameter : model.parameters())
    if (parameter->trainable) out.push_back({parameter, tensors.at(parameter)});
  return out;
}

void Fsdp1Runtime::begin_micro_step(Context& ctx, bool sync) { tree_->set_sync_gradients(ctx, sync); }

CausalLmOutput Fsdp1Runtime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                     const Tensor& num_items, const RunOptions& options) {
  const Tensor items = tree_->cast_root_input(ctx, num_items);
  tree_->pre_forward(ctx, model, ids);
  CausalLmOutput output = model.forward(ctx, ids, labels, items, options);
  if (options_.outputs_to_fp32) {
    const Scoped category(ctx.category, Category::logits_and_loss);
    output.logits = to(ctx, output.logits, DType::float32);
  }
  tree_->post_forward(ctx, {output.loss, output.logits});
  return output;
}

Tensor Fsdp1Runtime::clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters) {
  if (!zero_scalar_.defined()) {
    const Scoped category(ctx.category, Category::workspace);
    zero_scalar_ = empty(ctx, {}, DType::float32, Op::zeros);
  }
  return options_.shards ? tree_->clip_grad_norm(ctx) : qlp::clip_grad_norm(ctx, parameters);
}

}  // namespace qlp

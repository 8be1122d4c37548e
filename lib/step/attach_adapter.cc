#include "step/attach_adapter.h"

#include "nn/initial_values.h"
#include "nn/lora_linear.h"
#include "nn/param_lora.h"
#include "step/load_order.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

void cast(Context& ctx, Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return;
  const Tensor cast = empty_like(ctx, tensor, dtype, Op::to_copy);
  copy_into(ctx, cast, tensor);
  tensor = cast;
}
void cast(Context& ctx, Parameter& parameter, DType dtype) { cast(ctx, parameter.tensor, dtype); }

/// The dtype in which the matrices beside this weight are made.
DType adapter_dtype(const Parameter& base, DType compute_dtype, const LoadBehaviour& behaviour) {
  if (base.quant && !base.quant->eight_bit && behaviour.adapters_in_compute_dtype) return compute_dtype;
  return is_floating(base.tensor.dtype()) ? base.tensor.dtype() : DType::float32;
}

void make(Context& ctx, Parameter& parameter, DType dtype) {
  parameter.tensor = empty(ctx, parameter.shape, dtype, Op::parameter);
  fill_initial(ctx, parameter, parameter.tensor);
}

/// Adapters beside bare parameters, which PEFT makes after all others.
void make_parameter_adapters(Context& ctx, CausalLm& model) {
  model.visit([&](Module& module) {
    if (module.kind() != ModuleKind::param_lora) return;
    auto& lora = static_cast<ParamLora&>(module);
    for (Linear* matrix : {&lora.lora_a(), &lora.lora_b()}) make(ctx, matrix->weight(), lora.base().tensor.dtype());
  });
}

void make_adapters(Context& ctx, CausalLm& model, DType compute_dtype, const LoadBehaviour& behaviour) {
  model.visit([&](Module& module) {
    if (module.kind() == ModuleKind::embedding)
      for (const auto& parameter : module.own_parameters())
        if (parameter->role == ParamRole::lora_a || parameter->role == ParamRole::lora_b)
          make(ctx, *parameter, static_cast<Embedding&>(module).original().tensor.dtype());
    if (module.kind() != ModuleKind::lora_linear) return;
    auto& lora = static_cast<LoraLinear&>(module);
    const DType dtype = adapter_dtype(lora.weight(), compute_dtype, behaviour);
    for (LinearModule* matrix : {&lora.lora_a(), &lora.lora_b()}) {
      make(ctx, matrix->weight(), dtype);
      if (matrix->bias()) make(ctx, *matrix->bias(), dtype);
    }
    if (DoraLayer* dora = lora.dora()) dora->initialise(ctx, lora.dora_operands());
  });
  make_parameter_adapters(ctx, model);
}

/// ModulesToSaveWrapper: a deep copy of each module that is trained whole.
void copy_saved_modules(Context& ctx, CausalLm& model) {
  model.visit([&](Module& module) {
    for (const auto& parameter : module.own_parameters()) {
      if (parameter->role != ParamRole::modules_to_save) continue;
      const Parameter& original =
          module.shared_parameters().empty() ? *module.own_parameters().front() : *module.shared_parameters().front();
      parameter->tensor = empty_like(ctx, original.tensor, Op::clone);
      copy_into(ctx, parameter->tensor, original.tensor);
    }
  });
}

/// The rows of tokens that are trained, as they are in the table: picked by a list of numbers, then copied twice
/// (TrainableTokensLayer.update_layer).
void pick_token_rows(Context& ctx, CausalLm& model) {
  Embedding* const table = model.parts().embedding.get();
  if (!table || !table->tokens()) return;
  TokenDelta& tokens = *table->tokens();
  const Tensor& weight = table->original().tensor;
  const Shape& shape = tokens.rows().shape;
  Tensor picked;
  {
    const Tensor index = empty(ctx, {shape[0]}, DType::int64, Op::index);
    picked = empty(ctx, shape, weight.dtype(), Op::index);
  }
  for (std::size_t i = 0; i < tokens.tokens().size(); ++i)
    copy_elements(ctx, picked.narrow(0, static_cast<std::int64_t>(i), 1), weight.narrow(0, tokens.tokens()[i], 1));
  for (Tensor* copy : {&tokens.rows().tensor, &tokens.original()}) {
    *copy = empty(ctx, shape, weight.dtype(), Op::clone);
    copy_into(ctx, *copy, picked);
  }
}

}  // namespace

void prepare_for_kbit(Context& ctx, CausalLm& model, const LoadBehaviour& behaviour) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped category(ctx.category, Category::parameters);
  for (Parameter* parameter : model.parameters())
    if (in_checkpoint(*parameter) && !parameter->quant) cast(ctx, *parameter, DType::float32);
  if (behaviour.kbit_empties_cache) ctx.device.empty_cache();
}

void cast_tables_back(Context& ctx, CausalLm& model) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped category(ctx.category, Category::parameters);
  for (Parameter* parameter : model.parameters())
    if (parameter->role == ParamRole::embedding || parameter->role == ParamRole::lm_head)
      cast(ctx, *parameter, DType::bfloat16);
}

void attach_adapter(Context& ctx, CausalLm& model, const AdapterSpec& adapter, DType compute_dtype,
                    const LoadBehaviour& behaviour) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  const Scoped category(ctx.category, Category::adapter);
  make_adapters(ctx, model, compute_dtype, behaviour);
  copy_saved_modules(ctx, model);
  pick_token_rows(ctx, model);
  const auto added = [](const Parameter& parameter) {
    return !in_checkpoint(parameter) && parameter.role != ParamRole::modules_to_save;
  };
  if (adapter.autocast_adapter_dtype && behaviour.casts_adapters)
    for (Parameter* parameter : model.parameters()) {
      if (!added(*parameter)) continue;
      cast(ctx, *parameter, DType::float32);
      if (parameter->role == ParamRole::trainable_tokens)  // and the buffer beside it
        cast(ctx, model.parts().embedding->tokens()->original(), DType::float32);
    }
  if (adapter.dtype)
    for (Parameter* parameter : model.parameters())
      if (parameter->trainable) cast(ctx, *parameter, *adapter.dtype);
}

}  // namespace qlp

#include "model/check_adapted.h"

#include "base/refusal.h"
#include "model/target_matching.h"

namespace qlp {
namespace {

Diagnostics check_parameters(const AdapterSpec& adapter, const AdaptedParts& adapted) {
  if (adapted.half_of_gate_up)
    return {refusal("half-of-gate-up", "gate and up of the experts are one parameter, and only one of them is targeted",
                    "adapter.target_modules", "name both or none")};
  if (adapted.parameters == 0) return {};
  Diagnostics refusals;  // peft/tuners/lora/layer.py, ParamWrapper
  if (adapter.lora_dropout > 0)
    refusals.push_back(refusal("expert-dropout", "PEFT has no dropout for adapters on experts and routers",
                               "adapter.lora_dropout", "0, or leave the experts and the router out of target_modules"));
  if (adapter.use_dora)
    refusals.push_back(refusal("expert-dora", "PEFT has no DoRA for experts and routers", "adapter.use_dora",
                               "false, or leave the experts and the router out of target_modules"));
  if (adapter.lora_bias)
    refusals.push_back(refusal("expert-bias", "PEFT has no biases for adapters on experts and routers",
                               "adapter.lora_bias", "false, or leave the experts and the router out"));
  return refusals;
}

Diagnostics check_modules(const AdapterSpec& adapter, CausalLm& model, const AdaptedParts& adapted) {
  Diagnostics refusals;
  const Module* const embedding = model.parts().embedding.get();
  const Module* const head = model.parts().head.get();
  const bool limited =
      !adapter.layers_to_transform.empty() || !adapter.exclude_modules.empty() || !adapter.exclude_pattern.empty();
  if (adapted.modules + adapted.parameters == 0)
    refusals.push_back(limited ? refusal("no-target-module",
                                         "target_modules matches no linear layer of this model that exclude_modules, "
                                         "layers_to_transform and layers_pattern leave",
                                         "adapter.target_modules", "look at those: layers are counted from 0")
                               : refusal("no-target-module", "target_modules matches no linear layer of this model",
                                         "adapter.target_modules", "use all-linear, or names like q_proj, v_proj"));
  model.visit([&](const Module& module) {
    const bool planned = &module == embedding || &module == head || module.kind() == ModuleKind::norm;
    if (!refusals.empty() || planned || module.name().empty()) return;
    if (is_saved_module(adapter, module.name()))
      refusals.push_back(refusal("saved-module", "training a whole copy of " + module.name() + " is not planned yet",
                                 "adapter.modules_to_save", "those of embed_tokens, lm_head and norms are"));
  });
  return refusals;
}

}  // namespace

Diagnostics check_adapted(const AdapterSpec& adapter, CausalLm& model, const AdaptedParts& adapted) {
  Diagnostics refusals = check_parameters(adapter, adapted);
  return refusals.empty() ? check_modules(adapter, model, adapted) : refusals;
}

}  // namespace qlp

#include "model/trained.h"

namespace qlp {

bool is_trained(const AdapterSpec& adapter, const Parameter& parameter, const AdapterBehaviour& behaviour) {
  switch (parameter.role) {
    case ParamRole::lora_a:
    case ParamRole::lora_b:
    case ParamRole::lora_bias:
    case ParamRole::dora_magnitude:
    case ParamRole::modules_to_save:
    case ParamRole::trainable_tokens:
      return true;
    case ParamRole::bias:
      return (adapter.bias == AdapterBias::all &&
              (behaviour.trains_bare_biases || parameter.name.ends_with(".bias"))) ||
             (adapter.bias == AdapterBias::lora_only && parameter.name.ends_with(".base_layer.bias"));
    default:
      return false;
  }
}

}  // namespace qlp

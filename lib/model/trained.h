// Which parameters PEFT trains (peft/tuners/tuners_utils.py, _mark_only_adapters_as_trainable).
#pragma once

#include "model/adapter_spec.h"
#include "nn/behaviour.h"
#include "nn/parameter.h"

namespace qlp {

/// What the adapter has added, and by `bias` biases of the base: all, or those of layers that have an adapter.
bool is_trained(const AdapterSpec& adapter, const Parameter& parameter, const AdapterBehaviour& behaviour);

}  // namespace qlp

// What happens to a loaded model before training: the casts of k-bit training, and the adapter (peft).
#pragma once

#include "model/adapter_spec.h"
#include "nn/causal_lm.h"
#include "plan/load_behaviour.h"

namespace qlp {

/// prepare_model_for_kbit_training: all 16-bit parameters that are not quantized become float32, one by one.
void prepare_for_kbit(Context& ctx, CausalLm& model, const LoadBehaviour& behaviour);

/// TRL's peft_module_casting_to_bf16: embedding and head, where they have become float32.
void cast_tables_back(Context& ctx, CausalLm& model);

/// get_peft_model, and the cast of trainables after it. `compute_dtype` is that of 4-bit layers.
void attach_adapter(Context& ctx, CausalLm& model, const AdapterSpec& adapter, DType compute_dtype,
                    const LoadBehaviour& behaviour);

}  // namespace qlp

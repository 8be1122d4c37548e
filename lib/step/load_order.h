// The order in which from_pretrained reads the weights of a checkpoint.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "nn/causal_lm.h"
#include "plan/load_behaviour.h"

namespace qlp {

/// Checkpoints differ in where they are cut: save_pretrained's default was 5 GB for long and is 50 GB now, the
/// reference runs' and that of sparse-weights is this.
inline constexpr Bytes kCheckpointFileBytes{4'000'000'000};

/// Parameters that a checkpoint holds, tied ones once, in reading order. `dtype` is that of the files: weights fill
/// them in the order of the model. `mxfp4`: stacks of experts stand under the names of their packed blocks.
std::vector<Parameter*> load_order(CausalLm& model, DType dtype, Loader loader, bool mxfp4 = false);

/// The weights of all experts of a layer.
bool is_stack(const Parameter& parameter);

/// True for weights of the base model, false for what an adapter adds.
bool in_checkpoint(const Parameter& parameter);

}  // namespace qlp

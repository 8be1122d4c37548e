// The order in which from_pretrained reads the weights of a checkpoint.
#pragma once

#include <vector>

#include "nn/causal_lm.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Parameters that a checkpoint holds, tied ones once, in reading order. Checkpoints differ in how they are cut into
/// files, which transformers 4 reads one after the other, each in the order of its names; this is the order of one file.
std::vector<Parameter*> load_order(CausalLm& model, Loader loader);

/// True for weights of the base model, false for what an adapter adds.
bool in_checkpoint(const Parameter& parameter);

}  // namespace qlp

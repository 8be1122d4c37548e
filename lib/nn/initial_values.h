// The numbers that the weights of a made-up model start with: by name and place, so that every plan, rank and device
// has the same model.
#pragma once

#include <string>

#include "nn/parameter.h"
#include "tensor/context.h"

namespace qlp {

/// The name in a checkpoint, which knows nothing of adapters.
std::string checkpoint_name(const Parameter& parameter);

/// Fills `out`, which is the parameter, or as many of its rows from `first_row` on as `out` has. What ranks share
/// layers of is a part of the same numbers. Weights are uniform around 0, as wide as one over the root of their inputs,
/// gains of norms lie around 1. An adapter starts as PEFT's does: A as other weights, B at 0.
void fill_initial(Context& ctx, const Parameter& parameter, const Tensor& out, std::int64_t first_row = 0);

}  // namespace qlp

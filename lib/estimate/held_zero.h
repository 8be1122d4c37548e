// The closed form of what DeepSpeed's ranks hold of the weights, their gradients and master weights.
#pragma once

#include <cstdint>
#include <optional>

#include "estimate/held_weights.h"
#include "plan/stack_profile.h"
#include "shard/zero3_options.h"

namespace qlp {

/// Stages 1 and 2. Gives the dtype to which the engine casts buffers.
std::optional<DType> hold_flat_groups(const JobSpec& job, const Zero& plan, std::int64_t rank,
                                      const StackProfile& stack, const Weights& weights, Held& held);

/// Stage 3.
void hold_parts(const Zero3Options& options, const Weights& weights, Held& held);

}  // namespace qlp

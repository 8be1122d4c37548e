// The closed form of what FSDP1's ranks hold of the weights and their gradients.
#pragma once

#include <cstdint>
#include <optional>

#include "estimate/held_weights.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Flat parameters, of whose units each rank has an equal part. Gives the dtype to which buffers are cast.
std::optional<DType> hold_flat_parameters(const JobSpec& job, const Fsdp1& plan, std::int64_t rank,
                                          const StackProfile& stack, const Weights& weights, Held& held);

}  // namespace qlp

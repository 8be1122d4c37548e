// The closed form of what FSDP2's ranks hold of the weights.
#pragma once

#include <cstdint>

#include "estimate/held_weights.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Each parameter is cut by rows.
void hold_rows(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack,
               const Weights& weights, Held& held);

}  // namespace qlp

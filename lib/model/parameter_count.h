// How many parameters a model has, in closed form.
#pragma once

#include <cstdint>

#include "model/model_spec.h"

namespace qlp {

/// Parameters of the base model, adapters not included; a tied lm_head counts once. Worked out from the formulas of
/// each family, not from a module tree, so that the two can be held against each other.
std::uint64_t parameter_count(const ModelSpec& spec);

}  // namespace qlp

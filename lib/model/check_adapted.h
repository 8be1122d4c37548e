// What an adapter asks for that the module tree does not hold.
#pragma once

#include <cstddef>

#include "base/diagnostic.h"
#include "model/adapter_spec.h"
#include "nn/causal_lm.h"

namespace qlp {

/// What got an adapter while the tree was built.
struct AdaptedParts {
  std::size_t modules = 0, parameters = 0;
  bool half_of_gate_up = false;  ///< gate was targeted without up, or up without gate, where they are one parameter
};

/// Why the adapter of such a tree is refused: names that match nothing, copies of modules that are not planned, options
/// that PEFT does not have for bare parameters.
Diagnostics check_adapted(const AdapterSpec& adapter, CausalLm& model, const AdaptedParts& adapted);

}  // namespace qlp

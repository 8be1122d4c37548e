// How many numbers a model has that was built.
#pragma once

#include <cstdint>

#include "nn/causal_lm.h"

namespace qlp {

/// Trained and all elements, adapters included; a tied weight counts once.
struct ElementCounts {
  std::uint64_t total = 0;
  std::uint64_t trainable = 0;
};
ElementCounts count_elements(CausalLm& model);

}  // namespace qlp

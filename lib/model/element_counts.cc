#include "model/element_counts.h"

namespace qlp {

ElementCounts count_elements(CausalLm& model) {
  ElementCounts counts;
  for (const Parameter* parameter : model.parameters()) {
    const auto numel = static_cast<std::uint64_t>(parameter->numel());
    counts.total += numel;
    if (parameter->trainable) counts.trainable += numel;
  }
  return counts;
}

}  // namespace qlp

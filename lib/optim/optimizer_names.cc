#include "optim/optimizer_names.h"

#include <stdexcept>

namespace qlp {

NamedOptimizer named_optimizer(std::string_view name) {
  for (const OptimizerName& row : kOptimizerNames)
    if (row.name == name) return {std::string(name), row.kind};
  throw std::invalid_argument("no optimizer of this name: " + std::string(name));
}

}  // namespace qlp

#include "model/optim_targets.h"

#include <algorithm>

#include "model/target_matching.h"

namespace qlp {

bool is_optim_target(const OptimTargets& targets, std::string_view name) {
  if (targets.all_linear) return true;
  if (!targets.pattern.empty()) return matches_pattern(targets.pattern, name);
  return std::ranges::any_of(targets.modules, [&](const std::string& module) {
    return name.find(module) != std::string_view::npos || matches_pattern(module, name);
  });
}

}  // namespace qlp

#include "shard/fsdp1_wrap.h"

#include <algorithm>

namespace qlp {
namespace {

/// Units hold at least `least` elements that no unit below them holds. Gives how many are in units.
std::int64_t wrap_by_size(Module& module, std::int64_t least, bool is_root, WrappedModules& units) {
  std::int64_t elements = 0, in_units = 0;
  for (const Parameter* parameter : module.parameters()) elements += parameter->numel();
  if (elements < least) return 0;
  for (Module* child : module.children()) in_units += wrap_by_size(*child, least, false, units);
  if (is_root || elements - in_units < least) return in_units;
  units.insert(&module);
  return elements;
}

/// PEFT's fsdp_auto_wrap_policy (utils/other.py), which looks at the weight of a module alone.
bool is_trained_leaf(Module& module) {
  if (!module.children().empty()) return false;
  return std::ranges::any_of(module.own_parameters(), [](const auto& parameter) {
    return parameter->trainable && parameter->name.ends_with("weight");
  });
}

}  // namespace

WrappedModules modules_to_wrap(Module& root, const Fsdp1Options& options) {
  WrappedModules units;
  if (options.wrap_policy == WrapPolicy::size_based_wrap) wrap_by_size(root, options.min_num_params, true, units);
  if (options.wrap_policy != WrapPolicy::transformer_based_wrap) return units;
  root.visit([&](Module& module) {
    const bool leaf = options.wraps_trained_leaves && is_trained_leaf(module);
    if (std::ranges::find(options.wrapped, module.kind()) != options.wrapped.end() || leaf) units.insert(&module);
  });
  return units;
}

}  // namespace qlp

// Which weights the Trainer's low-rank optimizers project (TrainingArguments.optim_target_modules).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qlp {

struct OptimTargets {
  bool all_linear = false;
  std::vector<std::string> modules;  ///< parts of names, or regexes on the whole name
  std::string pattern;               ///< one text: a regex on the whole name; else empty
  friend bool operator==(const OptimTargets&, const OptimTargets&) = default;
};

/// True for the linear layer of this full name (transformers trainer_utils.py, check_target_module_exists, 4.48 to
/// 5.24).
bool is_optim_target(const OptimTargets& targets, std::string_view name);

}  // namespace qlp

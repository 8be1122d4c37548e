// Which modules the classes of a wrap policy stand for in a job's model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "nn/module.h"
#include "plan/job_spec.h"

namespace qlp {

/// transformer_cls_names_to_wrap of a plan.
using WrappedClasses = std::optional<std::vector<std::string>>;

/// Those that can be planned; the decoder layers where no class is named.
std::vector<ModuleKind> wrapped_kinds(const JobSpec& job, const WrappedClasses& classes);

/// The others, and names beside a policy that does not ask for them. `key_path`: of the option.
void check_wrapped_classes(const JobSpec& job, const WrappedClasses& classes, bool by_class,
                           const std::string& key_path, Diagnostics& refusals);

}  // namespace qlp

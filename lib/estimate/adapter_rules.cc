#include "estimate/adapter_rules.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/refusal.h"
#include "base/text.h"
#include "model/build.h"
#include "model/target_matching.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

/// Names of the model's modules as PEFT looks at them.
struct ModuleNames {
  std::vector<std::string> all;
  std::vector<std::string> linear;  ///< an adapter can go there
};

ModuleNames module_names(const JobSpec& job) {
  ModuleNames names;
  const auto model = build_model(job.model, {.model_behaviour = StackProfile(job.stack).model(job.model.family)});
  if (!model) return names;
  model.value()->visit([&](const Module& module) {
    names.all.push_back(module.name());
    if (module.kind() == ModuleKind::linear || module.kind() == ModuleKind::router)
      names.linear.push_back(module.name());
    // PEFT takes what the experts were called before they became stacks.
    if (module.kind() == ModuleKind::experts)
      for (const char* part : {".w1", ".w2", ".w3", ".gate_proj", ".up_proj", ".down_proj"})
        names.linear.push_back(module.name() + part);
  });
  return names;
}

/// "q_proj, k_proj": the last parts of names, each once, in their order.
std::string last_parts(const std::vector<std::string>& names) {
  std::vector<std::string_view> parts;
  for (const std::string_view name : names) {
    const std::string_view part = name.substr(name.rfind('.') + 1);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return join(parts);
}

Diagnostic passed_over(const std::vector<std::string>& unmatched, const char* what, std::string key_path,
                       std::string hint) {
  const std::vector<std::string_view> views{unmatched.begin(), unmatched.end()};
  Diagnostic warning = refusal("adapter-name-unmatched",
                               join(views) + (unmatched.size() == 1 ? " matches no " : " match no ") + what +
                                   " of this model, which PEFT passes over in silence",
                               std::move(key_path), std::move(hint));
  warning.severity = Severity::warning;
  return warning;
}

}  // namespace

Diagnostics adapter_warnings(const JobSpec& job) {
  if (!job.adapter) return {};
  const AdapterSpec& adapter = *job.adapter;
  if (adapter.target_modules.empty() && adapter.modules_to_save.empty() && adapter.rank_pattern.empty()) return {};
  const ModuleNames names = module_names(job);
  std::vector<std::string> targets, saved, patterns;
  for (const std::string& target : adapter.target_modules) {
    const AdapterSpec alone{.target_modules = {target}};
    if (std::ranges::none_of(names.linear, [&](const auto& name) { return is_target(alone, name, false); }))
      targets.push_back(target);
  }
  for (const std::string& name : adapter.modules_to_save) {
    const AdapterSpec alone{.modules_to_save = {name}};
    if (std::ranges::none_of(names.all, [&](const auto& module) { return is_saved_module(alone, module); }))
      saved.push_back(name);
  }
  for (const auto& row : adapter.rank_pattern) {
    const std::string& pattern = row.first;
    const std::int64_t rank = row.second;
    const AdapterSpec alone{.r = rank + 1, .rank_pattern = {{pattern, rank}}};
    const auto takes_it = [&](const std::string& name) {
      return is_target(adapter, name, name == "lm_head") && rank_for(alone, name) == rank;
    };
    if (std::ranges::none_of(names.linear, takes_it)) patterns.push_back(pattern);
  }
  Diagnostics warnings;
  if (!targets.empty() && targets.size() < adapter.target_modules.size())
    warnings.push_back(passed_over(targets, "linear layer", "adapter.target_modules",
                                   "linear layers are " + last_parts(names.linear)));
  if (!saved.empty())
    warnings.push_back(passed_over(saved, "module", "adapter.modules_to_save", "embed_tokens and lm_head are there"));
  if (!patterns.empty()) warnings.push_back(passed_over(patterns, "layer with an adapter", "adapter.rank_pattern", ""));
  return warnings;
}

}  // namespace qlp

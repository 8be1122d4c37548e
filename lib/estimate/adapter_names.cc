#include "estimate/adapter_names.h"

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
  const auto model =
      build_model(job.model, {.model_behaviour = StackProfile(job.stack).models.behaviour(job.model.family)});
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
  if (adapter.target_modules.empty() && adapter.exclude_modules.empty() && adapter.modules_to_save.empty() &&
      adapter.rank_pattern.empty() && adapter.alpha_pattern.empty() && adapter.layers_to_transform.empty())
    return {};
  const ModuleNames names = module_names(job);
  const auto unmatched = [](const std::vector<std::string>& given, const std::vector<std::string>& modules,
                            const auto& matches) {
    std::vector<std::string> out;
    for (const std::string& name : given)
      if (std::ranges::none_of(modules, [&](const std::string& module) { return matches(name, module); }))
        out.push_back(name);
    return out;
  };
  const auto ends_module = [](const std::string& name, const std::string& module) {
    return is_target({.target_modules = {name}}, module, false);
  };
  const auto gives_a_rank = [&](const std::string& pattern, const std::string& name) {
    const AdapterSpec alone{.r = 1, .rank_pattern = {{pattern, 2}}};
    return is_target(adapter, name, name == "lm_head") && rank_for(alone, name) == 2;
  };
  const auto keys_of = [](const auto& rows) {
    std::vector<std::string> keys;
    for (const auto& row : rows) keys.push_back(row.first);
    return keys;
  };
  Diagnostics warnings;
  const auto warn = [&](const std::vector<std::string>& passed, const char* what, const char* key, std::string hint) {
    if (!passed.empty()) warnings.push_back(passed_over(passed, what, std::string("adapter.") + key, std::move(hint)));
  };
  std::vector<std::string> beyond;
  for (const std::int64_t layer : adapter.layers_to_transform)
    if (layer >= job.model.num_hidden_layers) beyond.push_back(std::to_string(layer));
  warn(beyond, "layer", "layers_to_transform", "layers are 0 to " + std::to_string(job.model.num_hidden_layers - 1));
  std::vector<std::string> targetable = names.linear;
  targetable.emplace_back("model.embed_tokens");
  auto targets = unmatched(adapter.target_modules, targetable, ends_module);
  std::erase(targets, "all-linear");
  if (targets.size() < adapter.target_modules.size())
    warn(targets, "linear layer", "target_modules", "linear layers are " + last_parts(names.linear));
  warn(unmatched(adapter.exclude_modules, names.all, ends_module), "module", "exclude_modules", "");
  warn(unmatched(adapter.modules_to_save, names.all,
                 [](const std::string& name, const std::string& module) {
                   return is_saved_module({.modules_to_save = {name}}, module);
                 }),
       "module", "modules_to_save", "embed_tokens, lm_head and norms are there");
  warn(unmatched(keys_of(adapter.rank_pattern), targetable, gives_a_rank), "layer with an adapter", "rank_pattern", "");
  warn(unmatched(keys_of(adapter.alpha_pattern), targetable, gives_a_rank), "layer with an adapter", "alpha_pattern",
       "");
  return warnings;
}

}  // namespace qlp

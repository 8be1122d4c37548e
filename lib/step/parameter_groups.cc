#include "step/parameter_groups.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "optim/weight_decay.h"

namespace qlp {
namespace {

/// The weight of a linear layer that optim_target_modules names.
bool is_projected(const Parameter& parameter, const GroupOptions& options) {
  constexpr std::string_view kWeight = ".weight";
  const bool linear = parameter.role == ParamRole::base_weight || parameter.role == ParamRole::lm_head ||
                      parameter.role == ParamRole::lora_a || parameter.role == ParamRole::lora_b ||
                      parameter.role == ParamRole::modules_to_save;
  const std::string name = options.name_prefix + parameter.name;
  if (!linear || parameter.shape.rank() != 2 || !name.ends_with(kWeight)) return false;
  if (parameter.name.starts_with("model.embed_tokens")) return false;
  return is_optim_target(*options.optim_targets, std::string_view(name).substr(0, name.size() - kWeight.size()));
}

}  // namespace

ParameterGroups group_parameters(const std::vector<TrainedTensor>& trained, const GroupOptions& options) {
  const bool projects = options.optim_targets.has_value();
  std::vector<std::pair<LayerMesh, ParameterGroup>> first, second;
  for (const auto& [parameter, tensor, flat, whole, first_row] : trained) {
    const LayerMesh mesh = parameter->mesh;
    const bool is_first = projects ? flat || !is_projected(*parameter, options)
                                   : options.one_group || has_weight_decay(*parameter, options.norms_decay);
    auto& groups = is_first ? first : second;
    auto group = std::ranges::find(groups, mesh, &std::pair<LayerMesh, ParameterGroup>::first);
    if (group == groups.end()) group = groups.emplace(group, mesh, ParameterGroup{});
    group->second.push_back(tensor);
  }
  ParameterGroups out;
  for (auto* some : {&first, &second}) {
    if (projects && some->empty()) out.groups.emplace_back();
    for (auto& [mesh, group] : *some) out.groups.push_back(std::move(group));
  }
  out.weight_decays.resize(out.groups.size(), 0.0);
  if (!projects) std::fill_n(out.weight_decays.begin(), first.size(), options.weight_decay);
  return out;
}

}  // namespace qlp

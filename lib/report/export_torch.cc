#include "report/export_torch.h"

#include <map>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "estimate/shard_map.h"
#include "report/format.h"
#include "report/job_json.h"
#include "report/json_parts.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

std::string python_text(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string units_text(const std::vector<WrapUnit>& units) {
  std::string out = "WRAP_UNITS = [\n";
  for (const WrapUnit& unit : units) {
    std::string names;
    for (const std::string& module : unit.modules) names += (names.empty() ? "" : ", ") + python_text(module);
    out += "    ([" + names + "], " + (unit.reshard_after_forward ? "True" : "False") + "),\n";
  }
  return out + "]\n";
}

std::string names_text(std::string_view list, const ShardMap& map, Placement placement) {
  std::string out = std::string(list) + " = [\n";
  for (const MappedParameter& parameter : map.parameters)
    if (parameter.placement == placement) out += "    " + python_text(parameter.name) + ",\n";
  return out + "]\n";
}

Json units_json(const std::vector<WrapUnit>& units) {
  Json out = Json::array();
  for (const WrapUnit& unit : units)
    out.push_back({{"modules", unit.modules}, {"reshard_after_forward", unit.reshard_after_forward}});
  return out;
}

/// A line for each role, kind of module and what becomes of it.
Json rules_json(const std::vector<MappedParameter>& parameters) {
  using Key = std::tuple<std::string, ParamRole, DType, bool, bool, Placement>;
  std::vector<Key> order;
  std::map<Key, std::pair<std::int64_t, std::int64_t>> sums;  // parameters, elements
  for (const MappedParameter& p : parameters) {
    const Key key{without_layer(p.name), p.role, p.dtype, p.trainable, p.quantized, p.placement};
    auto [sum, is_new] = sums.try_emplace(key);
    if (is_new) order.push_back(key);
    ++sum->second.first;
    sum->second.second += p.elements;
  }
  Json out = Json::array();
  for (const Key& key : order) {
    const auto& [name, role, dtype, trainable, quantized, placement] = key;
    const auto& [count, elements] = sums.at(key);
    out.push_back({{"parameters", name},
                   {"role", name_of(role)},
                   {"dtype", name_of(dtype)},
                   {"trainable", trainable},
                   {"quantized", quantized},
                   {"placement", name_of(placement)},
                   {"count", count},
                   {"elements", elements}});
  }
  return out;
}

std::string text_of(const AxisPlacement& axis) {
  return axis.dim ? "Shard(" + std::to_string(*axis.dim) + ")" : "Replicate()";
}

Json axes_json(const std::vector<AxisPlacement>& axes) {
  Json out = Json::object();
  for (const AxisPlacement& axis : axes) out[axis.axis] = text_of(axis);
  return out;
}

/// Python: {name: {dimension: placement}}, and with stages the names that each of them has.
std::string mesh_text(const ShardMap& map, const Mesh& mesh) {
  if (mesh == Mesh{}) return "";
  std::string out =
      "# What each dimension of the mesh does with each parameter (torch.distributed.tensor.Shard, Replicate).\n"
      "PLACEMENTS = {\n";
  for (const MappedParameter& parameter : map.parameters) {
    std::string axes;
    for (const AxisPlacement& axis : parameter.axes)
      axes += (axes.empty() ? "" : ", ") + python_text(axis.axis) + ": " + python_text(text_of(axis));
    out += "    " + python_text(parameter.name) + ": {" + axes + "},\n";
  }
  out += "}\n";
  if (mesh.pp == 1) return out;
  out += "# What each stage of the pipeline has.\nSTAGES = [\n";
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    out += "    [\n";
    for (const MappedParameter& parameter : map.parameters)
      if (parameter.stage == stage) out += "        " + python_text(parameter.name) + ",\n";
    out += "    ],\n";
  }
  return out + "]\n";
}

Json parameters_json(const std::vector<MappedParameter>& parameters, const Mesh& mesh) {
  Json out = Json::array();
  for (const MappedParameter& p : parameters) {
    out.push_back({{"name", p.name},
                   {"role", name_of(p.role)},
                   {"dtype", name_of(p.dtype)},
                   {"elements", p.elements},
                   {"trainable", p.trainable},
                   {"quantized", p.quantized},
                   {"placement", name_of(p.placement)}});
    if (mesh != Mesh{}) out.back()["placements"] = axes_json(p.axes);
    if (mesh.pp > 1) out.back()["stage"] = p.stage;
  }
  return out;
}

}  // namespace

Result<std::string> torch_lists(const JobSpec& job, const NamedPlan& plan) {
  const auto map = shard_map(job, plan);
  if (!map) return Unexpected{map.error()};
  std::string out = "# " + plan.name + " of " + harmless(job.model.name) + " over " +
                    std::to_string(job.cluster.world_size) + " ranks, by qlora-plan.\n";
  if (!map->units.empty())
    out +=
        "# Wrap in this order: the modules by name that are one unit (\"\" is the model), and whether the unit\n"
        "# reshards after the forward pass.\n" +
        units_text(map->units);
  out += "# Parameters as in named_parameters(). Whole on every rank, and to be passed as ignored_params:\n";
  out += names_text("IGNORED", *map, Placement::ignored);
  out += "# Cut over the ranks:\n" + names_text("SHARDED", *map, Placement::sharded);
  out += "# Whole on every rank, kept alike by the runtime:\n" + names_text("REPLICATED", *map, Placement::replicated);
  return out + mesh_text(*map, job.cluster.mesh);
}

Result<std::string> shard_map_json(const JobSpec& job, const NamedPlan& plan) {
  const auto map = shard_map(job, plan);
  if (!map) return Unexpected{map.error()};
  Json out{{"plan", plan.name}, {"options", plan_options_json(plan.plan)}, {"world_size", job.cluster.world_size}};
  if (job.cluster.mesh != Mesh{}) out["mesh"] = mesh_json(job.cluster.mesh);
  out["rules"] = rules_json(map->parameters);
  out["wrap_units"] = units_json(map->units);
  out["parameters"] = parameters_json(map->parameters, job.cluster.mesh);
  return document_text(out);
}

}  // namespace qlp

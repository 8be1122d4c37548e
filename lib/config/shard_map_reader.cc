#include "config/shard_map_reader.h"

#include <algorithm>
#include <array>
#include <vector>

#include "config/map_reader.h"
#include "config/mesh_reader.h"
#include "config/plan_options.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

/// The options that the name of a plan says.
struct NamedOptions {
  std::vector<std::string_view>& keys;

  template <class... Args>
  void option(std::string_view, Args&&...) const {}
  template <class... Args>
  void automatic(std::string_view, Args&&...) const {}
  template <class... Args>
  void fillable(std::string_view, Args&&...) const {}
  template <class Options>
  void section(std::string_view, const Options&) const {}
  template <class T>
  void named(std::string_view key, const T&) const {
    keys.push_back(key);
  }
};

/// The options without those.
TextNode others(const TextNode& options, const ShardingPlan& plan) {
  std::vector<std::string_view> named;
  std::visit([&](const auto& of_plan) { visit_options(of_plan, NamedOptions{named}); }, plan);
  TextNode out = options;
  std::erase_if(out.entries, [&](const Entry& entry) { return std::ranges::find(named, entry.key) != named.end(); });
  return out;
}

}  // namespace

std::optional<LaunchFile> read_shard_map(const TextNode& root, const std::string& file, Findings& findings) {
  MapReader map(&root, {"", {file, root.position.line, root.position.column}}, findings);
  map.require("plan", "the name of a plan");
  const auto name = map.text("plan");
  auto plan = name ? find_plan(*name) : std::nullopt;
  if (name && !plan) map.refuse("plan", "unknown-plan", "no plan is called '" + name->substr(0, 40) + "'");
  LaunchFile out;
  out.world_size = map.integer("world_size", {1, kMostRanks});
  const TextNode* const options = map.take("options");
  out.mesh = read_mesh(map, {});
  map.finish_foreign(std::array<std::string_view, 3>{"rules", "wrap_units", "parameters"});
  if (!plan) return std::nullopt;
  if (options && options->kind == NodeKind::map) {
    const TextNode own = others(*options, plan->plan);
    MapReader reader(&own, map.place_of("options"), findings);
    read_plan_options(reader, plan->plan);
  }
  out.plan = *std::move(plan);
  return out;
}

}  // namespace qlp

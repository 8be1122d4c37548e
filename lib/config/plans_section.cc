#include <algorithm>

#include "base/text.h"
#include "config/job_sections.h"
#include "config/plan_options.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

std::optional<NamedPlan> plan_called(const std::string& name, const KeyPlace& at, Findings& findings) {
  if (auto plan = find_plan(name)) return plan;
  const auto near = closest(name, kAllPlanNames);
  findings.error("unknown-plan", at, "no plan is called '" + name.substr(0, 40) + "'",
                 near ? "did you mean " + std::string(*near) + "?" : "plans: " + join(kPlanNames));
  return std::nullopt;
}

}  // namespace

std::vector<NamedPlan> read_plans_section(const Section& where, Findings& findings) {
  std::vector<NamedPlan> plans;
  if (!where.node) {
    findings.note("default-used", where.place, "not given: " + join(kPlanNames));
    for (auto name : kPlanNames) plans.push_back(*find_plan(name));
    return plans;
  }
  const auto& node = *where.node;
  if (node.kind == NodeKind::sequence) {
    for (const auto& item : node.items) {
      const KeyPlace at{where.place.path, item->position};
      const auto name = text_of(*item);
      const bool again =
          name && std::any_of(plans.begin(), plans.end(), [&](const auto& p) { return p.name == *name; });
      if (!name) {
        findings.error("wrong-type", at, "expected the name of a plan, found " + describe(*item));
      } else if (again) {
        findings.error("duplicate-item", at, "'" + *name + "' is listed twice");
      } else if (auto plan = plan_called(*name, at, findings)) {
        plans.push_back(*std::move(plan));
      }
    }
  } else {
    MapReader map(where.node, where.place, findings);
    for (const auto& entry : node.entries) {
      const KeyPlace at{join_path(where.place.path, entry.key), entry.key_position};
      const bool again = std::any_of(plans.begin(), plans.end(), [&](const auto& p) { return p.name == entry.key; });
      map.take(entry.key);
      auto plan = again ? std::nullopt : plan_called(entry.key, at, findings);
      if (!plan) continue;
      const bool given = entry.value->kind != NodeKind::null;
      MapReader options(given ? entry.value.get() : nullptr, at, findings);
      read_plan_options(options, plan->plan);
      plans.push_back(*std::move(plan));
    }
    map.finish();
  }
  const bool holds_plans = node.kind == NodeKind::sequence || node.kind == NodeKind::map;
  if (holds_plans && node.entries.empty() && node.items.empty())
    findings.error("bad-value", where.place, "no plan: name at least one, or leave plans out for all");
  return plans;
}

}  // namespace qlp

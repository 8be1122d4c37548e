#include "estimate/moot_mistakes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plan/mistakes.h"

namespace qlp {
namespace {

bool same(const RankReport& a, const RankReport& b) {
  return a.rank == b.rank && a.peak.figures == b.peak.figures && a.training_peak.figures == b.training_peak.figures &&
         a.persistent == b.persistent;
}

bool changes_nothing(const PlanReport& plan, const std::vector<PlanReport>& plans) {
  const Mistake* mistake = find_mistake(plan.plan.name);
  if (mistake == nullptr || plan.ranks.empty()) return false;
  const auto right = std::ranges::find(plans, mistake->right, [](const PlanReport& p) { return p.plan.name; });
  return right != plans.end() && std::ranges::equal(plan.ranks, right->ranks, same);
}

}  // namespace

void leave_out_moot_mistakes(Report& report) {
  std::vector<std::string> moot;
  for (const PlanReport& plan : report.plans)
    if (changes_nothing(plan, report.plans)) moot.push_back(plan.plan.name);
  const std::string takes = report.job.adapter ? " takes" : " takes, as every parameter is trained";
  for (const std::string& name : moot) {
    std::erase_if(report.plans, [&](const PlanReport& plan) { return plan.plan.name == name; });
    std::string message = name;
    message.append(" is left out: it takes to the byte what ").append(find_mistake(name)->right).append(takes);
    report.diagnostics.push_back({.severity = Severity::note,
                                  .code = "mistake-changes-nothing",
                                  .message = std::move(message),
                                  .key_path = {},
                                  .position = {},
                                  .hint = {}});
  }
}

}  // namespace qlp

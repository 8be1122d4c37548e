#include "estimate/check.h"

#include <algorithm>
#include <utility>

#include "estimate/check_rules.h"
#include "estimate/estimate.h"

namespace qlp {
namespace {

/// What the job takes with the fix made; none if it cannot run so.
std::optional<PricedFix> price(const Fix& fix, const CheckedPlan& checked) {
  const PlanReport plan = estimate_plan(fix.job, fix.plan);
  if (!plan.applicable() || plan.ranks.empty()) return std::nullopt;
  const PeakReport& peak = plan.ranks.front().peak;
  PricedFix priced{.text = fix.text,
                   .plan = fix.plan.name,
                   .peak_allocated = peak.figures.allocated,
                   .device_used = peak.device_used,
                   .fits = plan.fits,
                   .saving = std::nullopt};
  if (checked.ran()) priced.saving = difference(checked.rank().peak.figures.allocated, peak.figures.allocated);
  return priced;
}

/// The first fix that helps: that makes a job run that could not, fit that did not, or else saves memory.
std::optional<PricedFix> best_fix(const std::vector<Fix>& fixes, const CheckedPlan& checked) {
  std::optional<PricedFix> best;
  for (const Fix& fix : fixes) {
    auto priced = price(fix, checked);
    if (!priced) continue;
    const bool mends = priced->fits && !checked.report.fits;
    if (!mends && priced->saving && *priced->saving <= ByteDelta{}) continue;
    if (!checked.ran() || priced->fits || checked.report.fits) return priced;
    if (!best || priced->device_used < best->device_used) best = priced;
  }
  return best;
}

}  // namespace

Report check(const JobSpec& job, const NamedPlan& plan) {
  JobSpec only = job;
  only.plans = {plan};
  Report report = estimate(only, {.phase_inventories = true});
  const CheckedPlan checked{job, plan, report.plans.front(), StackProfile(job.stack)};
  std::vector<Finding> findings;
  for (const auto rules : {refusal_rules, name_rules, sharding_rules, dtype_rules, activation_rules, budget_rules}) {
    for (Suspicion& suspicion : rules(checked)) {
      suspicion.finding.plan = plan.name;
      suspicion.finding.fix = best_fix(suspicion.fixes, checked);
      findings.push_back(std::move(suspicion.finding));
    }
  }
  std::ranges::stable_sort(findings, std::ranges::greater{}, &Finding::severity);
  report.findings = std::move(findings);
  return report;
}

}  // namespace qlp

#include <algorithm>

#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

void add_other_plans(std::vector<Fix>& fixes, const CheckedPlan& checked) {
  if (checked.job.cluster.world_size == 1) return;
  for (const auto plan : kPlanNames)
    if (plan != checked.plan.name) fixes.push_back(under_plan(checked, std::string(plan)));
}

/// A device is used beyond what it has, or has enough only with the cache given back.
Suspicion over_budget(const CheckedPlan& checked) {
  Suspicion over;
  over.finding.severity = checked.report.fits ? Severity::warning : Severity::error;
  over.finding.code = "over-budget";
  over.finding.message = checked.report.fits
                             ? "it fits only because PyTorch gives its cache back; free-running it takes"
                             : "a GPU is used beyond what it has, margin left out";
  over.finding.evidence = checked.rank().peak.device_used_freely();
  over.finding.key_path = "cluster";
  add(over.fixes, {checkpointing(checked), fused_loss(checked), smaller_batch(checked)});
  add_other_plans(over.fixes, checked);
  if (checked.job.cluster.world_size > 1) add(over.fixes, {sharded_storage(checked)});
  add(over.fixes, {quantized_base(checked)});
  return over;
}

Suspicion host_over_budget(const CheckedPlan& checked, const Diagnostic& shortage) {
  Suspicion over;
  over.finding.severity = Severity::error;
  over.finding.code = "host-over-budget";
  over.finding.message = shortage.message;
  over.finding.evidence = checked.report.host->per_node;
  over.finding.key_path = shortage.key_path;
  over.fixes.push_back(under_plan(checked, checked.plan.name));  // its options at their defaults: no offload
  add_other_plans(over.fixes, checked);
  add(over.fixes, {quantized_base(checked)});
  return over;
}

}  // namespace

std::vector<Suspicion> budget_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  if (!checked.ran()) return out;
  const auto shortage = std::ranges::find(checked.report.diagnostics, "host-memory", &Diagnostic::code);
  const bool on_host = shortage != checked.report.diagnostics.end();
  if (on_host) out.push_back(host_over_budget(checked, *shortage));
  const bool too_large = !checked.report.fits && (!on_host || checked.rank().peak.headroom < ByteDelta{});
  if (too_large || checked.report.cache_given_back) out.push_back(over_budget(checked));
  return out;
}

}  // namespace qlp

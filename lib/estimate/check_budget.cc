#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"
#include "plan/catalogue.h"

namespace qlp {

std::vector<Suspicion> budget_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  if (!checked.ran() || (checked.report.fits && !checked.report.cache_given_back)) return out;
  const PeakReport& peak = checked.rank().peak;
  Suspicion over;
  over.finding.severity = checked.report.fits ? Severity::warning : Severity::error;
  over.finding.code = "over-budget";
  over.finding.message = checked.report.fits
                             ? "it fits only because PyTorch gives its cache back; free-running it takes"
                             : "a GPU is used beyond what it has, margin left out";
  over.finding.evidence = peak.device_used_freely();
  over.finding.key_path = "cluster";
  add(over.fixes, {checkpointing(checked), fused_loss(checked), smaller_batch(checked)});
  if (checked.job.cluster.world_size > 1)
    for (const auto plan : kPlanNames)
      if (plan != checked.plan.name) over.fixes.push_back(under_plan(checked, std::string(plan)));
  if (checked.job.cluster.world_size > 1) add(over.fixes, {sharded_storage(checked)});
  add(over.fixes, {quantized_base(checked)});
  out.push_back(std::move(over));
  return out;
}

}  // namespace qlp

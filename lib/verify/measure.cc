#include "verify/measure.h"

#include "estimate/rank_report.h"

namespace qlp {

RankMeasurement measurement_of(const DryRun& run, std::int64_t rank) {
  RankMeasurement out;
  for (const PhaseReport& phase : rank_report(run, rank, false).phases)
    out.phases.push_back({phase.name, phase.peak, phase.held});
  out.managed_state = run.managed_state;
  for (const StepNumbers& step : run.steps) {
    out.losses.push_back(step.loss);
    out.gradient_norms.push_back(step.grad_norm);
    if (step.skipped) out.skipped_steps.push_back(static_cast<std::int64_t>(out.losses.size()));
  }
  return out;
}

}  // namespace qlp

// What the ranks of a run are predicted to take, and the verdict when they have run.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/report.h"
#include "estimate/verification.h"
#include "verify/compare.h"
#include "verify/supervisor.h"

namespace qlp {

/// What is verified: a job with one plan, and as many steps as are run.
struct VerifyRequest {
  JobSpec job;
  NamedPlan plan;
  VerifyDevice device = VerifyDevice::cpu;
  std::optional<std::int64_t> alone;  ///< the rank that is played by itself; none: all are
  Tolerance tolerance;
};

/// The ranks that run: all of the plan's, or the one that is played alone.
std::vector<std::int64_t> ranks_of(const VerifyRequest& request);

/// A prediction for each of these ranks. `known`: an estimate of the request, whose ranks are not played once more. The
/// plan must be one that runs.
std::vector<RankPrediction> predict(const VerifyRequest& request, const std::vector<std::int64_t>& ranks,
                                    const Report& known);

/// Holds what each rank measured against its prediction; both in the same order.
Verification verification_of(const VerifyRequest& request, const SupervisedRun& run,
                             const std::vector<RankPrediction>& predictions);

}  // namespace qlp

// The verdict: what a rank uses of its device against what the device gives, and which plan to take.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "estimate/report.h"

namespace qlp {

/// The part of capacity that is kept free.
Bytes margin_of(const ClusterSpec& cluster);

/// What is left to the allocator: capacity - margin - outside terms - used_by_others, 0 where nothing is.
Bytes allocator_limit(const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside);

/// Fills in device_used, required_device, capacity and headroom from the figures and required_reserved.
void settle(PeakReport& peak, const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside);

/// Whether only a replay against allocator_limit() can tell: free-running it does not fit, but what is active would.
bool needs_replay(const PeakReport& peak, const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside);

/// Settles all peaks of the plan, puts its worst rank first and decides whether it fits, on the host too where that is
/// known. `runs_when_limited` is the
/// outcome of the replays against allocator_limit() (true: every rank runs), none where none was made; then a searched
/// `required` decides.
void judge(PlanReport& plan, const ClusterSpec& cluster, std::optional<bool> runs_when_limited);

/// The plans as a user would take them: those that fit (all GPUs used, cache kept, the least lower bound of the step
/// time, little communication, much room, each to 1 %; then as the job has them, whose default is the simplest first),
/// then those that do not, the nearest first, then those that cannot run.
std::vector<const PlanReport*> best_first(const Report& report);

/// Whether some plan fits; what a mistake amounts to does not count.
bool any_fits(const Report& report);

/// What a scheduler must give the plan.
Resources resources_of(const PlanReport& plan, const JobSpec& job);

/// Fills in the report's recommended plan, its resources, and a diagnostic where the choice needs a word.
void recommend(Report& report);

}  // namespace qlp

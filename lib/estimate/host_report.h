// Host memory of a plan: what each process holds, and the sum over the processes of a node.
#pragma once

#include <vector>

#include "estimate/report.h"
#include "memory/host_memory.h"
#include "plan/job_spec.h"

namespace qlp {

/// Whether the processes of a node hold different things: where one of them loads or saves for all.
bool host_differs_between_ranks(const JobSpec& job, const NamedPlan& plan);

/// From the books of the first process of a node and, where they differ, of another one, whose run may end early: in
/// the phases that follow all do the same.
HostReport host_report(const JobSpec& job, const NamedPlan& plan, const std::vector<HostPhase>& first,
                       const std::vector<HostPhase>* other);

}  // namespace qlp

// All ranks of a run on the CPU, as threads of this process.
#pragma once

#include <functional>

#include "verify/prediction.h"
#include "verify/supervisor.h"

namespace qlp {

/// Runs the ranks of the request, each on a device with as much memory as the job's GPU leaves to the allocator.
/// `on_state` is told of every phase of every rank, one call at a time. Throws what is nobody's fault but ours.
SupervisedRun run_cpu_ranks(const VerifyRequest& request, const std::function<void(const RankRecord&)>& on_state);

}  // namespace qlp

// One rank of a job under one plan, run on the dry device: the record of every allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "memory/host_memory.h"
#include "memory/timeline.h"
#include "model/build.h"
#include "plan/job_spec.h"
#include "tensor/work.h"

namespace qlp {

struct DryRun {
  Timeline timeline;
  std::vector<HostPhase> host;  ///< memory of the process that drives the rank, in the same phases
  StringTable modules;          ///< names of AllocationLabel::module
  ElementCounts elements;
  std::vector<PhaseWork> work;   ///< of each phase of the timeline
  MemoryStats end;               ///< figures after the last step
  Bytes managed_state;           ///< of the optimizer, beside the allocator (cudaMallocManaged)
  std::uint32_t last_event = 0;  ///< of the run itself; what follows takes it apart
};

enum class RunExtent : std::uint8_t { whole, preparation };

/// Runs load, adapter, preparation and, in a whole run, all steps. Errors: what this plan or stack refuses, with the
/// reason.
Result<DryRun> dry_run(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank,
                       RunExtent extent = RunExtent::whole);

}  // namespace qlp

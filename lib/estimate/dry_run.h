// One rank of a job under one plan, run from load to save: the record of every allocation. On the dry device nothing is
// computed; on a machine that computes the same run gives numbers too.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "memory/host_memory.h"
#include "memory/timeline.h"
#include "model/build.h"
#include "model/element_counts.h"
#include "plan/job_spec.h"
#include "step/trainer.h"
#include "tensor/device.h"
#include "tensor/work.h"

namespace qlp {

struct DryRun {
  Timeline timeline;
  std::vector<HostPhase> host;  ///< memory of the process that drives the rank, in the same phases
  StringTable modules;          ///< names of AllocationLabel::module
  ElementCounts elements;
  std::vector<PhaseWork> work;     ///< of each phase of the timeline
  MemoryStats end;                 ///< figures after the last step
  Bytes managed_state;             ///< of the optimizer, beside the allocator (cudaMallocManaged)
  std::uint32_t last_event = 0;    ///< of the run itself; what follows takes it apart
  std::vector<StepNumbers> steps;  ///< what each step has come to; none on the dry device
};

/// What a rank runs on, and what differs from run to run of the same job.
struct Machine {
  SegmentSource* source = nullptr;  ///< of the device's memory
  Compute compute;                  ///< nothing: a dry run
  /// When freed memory that other streams still use can be used again. Where work is queued, never before somebody has
  /// waited for it.
  EventPolicy events = EventPolicy::ready_at_once;
  std::uint64_t seed = 0;  ///< of weights, text and dropout
  double learning_rate = 1e-3;
  bool even_routing = false;  ///< routers send tokens to all experts evenly, as is predicted where ranks share them
  /// Told of each phase of the timeline as it begins.
  std::function<void(const std::string& phase)> on_phase;
  /// Told of the model when all steps are done, on every rank, before anything is taken apart.
  std::function<void(Context&, CausalLm&, ShardingRuntime&)> at_end;
};

enum class RunExtent : std::uint8_t { whole, preparation };

/// Runs load, adapter, preparation and, in a whole run, all steps. Errors: what this plan or stack refuses, with the
/// reason.
Result<DryRun> dry_run(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank,
                       RunExtent extent = RunExtent::whole);

/// The same on a machine. Throws OutOfMemory where its memory is out, and what its kernels and communicator throw.
Result<DryRun> run_rank(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, RunExtent extent,
                        const Machine& machine);

}  // namespace qlp

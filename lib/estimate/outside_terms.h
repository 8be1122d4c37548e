// Device memory that a rank takes outside the framework's allocator: the CUDA context, NCCL, library code, managed
// memory.
// Terms, not a factor: each is a line of the report with its source, and a calibrated machine replaces it.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "estimate/nccl_memory.h"
#include "estimate/report.h"

namespace qlp {

/// The terms of one rank under a plan: cuda_context and library_overhead always, nccl where the plan communicates.
std::vector<OutsideTerm> outside_terms(const JobSpec& job, const NamedPlan& plan);

/// As many communicators of one kind.
struct Communicators {
  CommunicatorSpec spec;
  std::int64_t count = 1;
};

/// Each process group of a plan has a communicator, made when it is first used.
std::vector<Communicators> communicators(const JobSpec& job, const NamedPlan& plan);

/// Those of any process on the GPU: cuda_context and library_overhead.
std::vector<OutsideTerm> device_terms(const ClusterSpec& cluster);

/// How many ranks a plan's communicator joins: those of one replica of the model for `single`, else the job's world
/// size.
std::int64_t ranks_of(const JobSpec& job, const NamedPlan& plan);

/// State of an optimizer in managed memory.
OutsideTerm paged_optimizer_state(Bytes bytes);

/// Of the terms that cannot leave the device.
Bytes sum(const std::vector<OutsideTerm>& terms);
/// Of those that can.
Bytes managed_sum(const std::vector<OutsideTerm>& terms);

}  // namespace qlp

// From the records of a program's processes to its report.
#pragma once

#include <vector>

#include "trace/program_run.h"
#include "trace/trace_report.h"

namespace qlp {

/// What the program was started with.
struct TraceSetup {
  std::vector<std::string> command;
  ClusterSpec cluster;  ///< world_size: of the rank that is played, else 1; the records know better
  std::optional<std::int64_t> played_rank;
};

/// Terms outside the allocator: context, libraries, and the communicator of the world where there is one. Those of the
/// ranks that are known before the run are taken off the device, with the margin.
std::vector<OutsideTerm> terms_outside(const ClusterSpec& cluster);

TraceReport assemble(const TraceSetup& setup, const std::vector<ProcessRecord>& records, const ProgramRun& run);

}  // namespace qlp

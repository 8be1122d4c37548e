// A program of somebody else, run on the null GPU with the probe in it: for `trace` and `verify --runner torch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/trace_json.h"
#include "trace/assemble.h"

namespace qlp::app {

struct TracedProgram {
  std::vector<std::string> command;
  ClusterSpec cluster;       ///< GPU, margin; world_size of the rank that is played, else 1
  std::int64_t devices = 1;  ///< that it sees
  std::optional<std::int64_t> played_rank;
  ProbeRequest request;        ///< what the probe is asked; its folder is set here
  std::int64_t timeout = 600;  ///< seconds without a sign of life
};

struct TracedOutcome {
  ProgramRun run;
  TraceReport report;
};

/// Runs it to its end; what it prints goes to stderr. None where this installation is not whole, which is on stderr
/// then. SIGINT and SIGTERM end the program: RunEnd::interrupted.
std::optional<TracedOutcome> run_traced_program(TracedProgram program);

}  // namespace qlp::app

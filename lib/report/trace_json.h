// A traced program's report for machines, and what its probe is asked.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "trace/trace_report.h"

namespace qlp {

/// JSON text with two blanks of indent and a newline at the end: the property "trace" of report_schema().
std::string trace_json(const TraceReport& report, std::string_view tool_version);

/// What the probe is asked (lib/nullgpu/probe/qlora_plan_probe/request.py).
struct ProbeRequest {
  std::string directory;        ///< where it writes its records
  std::int64_t steps = 0;       ///< optimizer steps after which the program ends; 0: it runs to its end
  std::int64_t world_size = 0;  ///< of the rank that is played; 0: none is
  std::int64_t rank = 0;
  std::int64_t gpus_per_node = 8;
  bool inventory = false;
  std::string snapshot;                        ///< file; empty: none
  std::map<std::string, std::string> answers;  ///< by kind or "file.py:line"; values as JSON
};

std::string probe_request_json(const ProbeRequest& request);

}  // namespace qlp

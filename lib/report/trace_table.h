// A traced program's report for people.
#pragma once

#include <string>

#include "report/table.h"
#include "trace/trace_report.h"

namespace qlp {

/// A row for each phase of the worst rank, the other ranks in a line each, the verdict, what was answered and what was
/// not implemented. Of many micro batches and steps alike the first and the largest are shown, all with `verbose`.
std::string trace_table(const TraceReport& report, const TableOptions& options = {});

}  // namespace qlp

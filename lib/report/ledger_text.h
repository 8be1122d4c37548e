// The sum that a plan's verdict hangs on, in words: what the device holds, and what is left of it.
#pragma once

#include <string>

#include "estimate/report.h"

namespace qlp {

/// "device 16.21 = reserved 14.74 + cuda_context 0.52 + ...", "headroom 61.39 = capacity 79.18 - margin 1.58 - device
/// 16.21" and the host's sum, a line each. `peak` is that of a rank of the plan.
std::string ledger_text(const PlanReport& plan, const PeakReport& peak, const ClusterSpec& cluster);

/// Why the ledger's reserved is another than that of a GPU that never lags and has room for it; empty where it is not.
std::string reserved_text(const PeakReport& peak);

}  // namespace qlp

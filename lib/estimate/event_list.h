// The allocations and frees of a dry run as a table, to be laid beside those of the real libraries.
#pragma once

#include <string>

#include "estimate/dry_run.h"

namespace qlp {

/// CSV with the columns action (alloc, free_requested, in the words of torch's memory history), block (number of the
/// allocation), size (requested bytes), stream, phase, op, module; in the order of events, up to the end of the run.
std::string event_list(const DryRun& run);

}  // namespace qlp

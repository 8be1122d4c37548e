// From the record of a dry run to the report of one rank: peaks, categories, inventories, phase by phase.
#pragma once

#include <cstdint>

#include "estimate/dry_run.h"
#include "estimate/report.h"

namespace qlp {

/// The ledger of the run, not yet held against a device. `with_inventories` fills the inventory of every phase.
RankReport rank_report(const DryRun& run, std::int64_t rank, bool with_inventories);

}  // namespace qlp

// From the record of a dry run to the report of one rank: peaks, categories, inventories, phase by phase.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "estimate/dry_run.h"
#include "estimate/report.h"
#include "memory/replay.h"

namespace qlp {

/// The glossary's word for a phase: "micro2.backward" is a backward.
std::string glossary_phase(std::string_view name);

/// Phases from the first forward pass to the last step; not those of loading, preparing, evaluation and saving.
bool is_of_training(std::string_view phase);

/// The ledger of the run, not yet held against a device. `with_inventories` fills the inventory of every phase.
RankReport rank_report(const DryRun& run, std::int64_t rank, bool with_inventories);

/// Adds to the peaks what they are on a GPU that lags as far as it can: the outcome of a replay of the same run.
void add_slowest(RankReport& report, const Timeline& timeline, const ReplayOutcome& outcome);

/// Notes what it reserves on a device on which it runs only by giving its cache back: the outcome of that replay.
void set_limited(RankReport& report, const Timeline& timeline, const ReplayOutcome& outcome);

}  // namespace qlp

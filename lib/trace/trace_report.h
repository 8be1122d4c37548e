// The answer to a traced program: what each of its ranks took of its device, and whether that fits. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/enum_names.h"
#include "estimate/rank_ledger.h"
#include "plan/job_spec.h"
#include "trace/probe_record.h"

namespace qlp {

/// How a traced program came to its end.
enum class TraceOutcome : std::uint8_t { ran, out_of_memory, failed, hung };
template <>
inline constexpr std::array<EnumName<TraceOutcome>, 4> kEnumNames<TraceOutcome>{{
    {TraceOutcome::ran, "ran"},
    {TraceOutcome::out_of_memory, "out_of_memory"},
    {TraceOutcome::failed, "failed"},
    {TraceOutcome::hung, "hung"},
}};

/// One process on one device.
struct TracedRank {
  RankReport report;  ///< no categories and no tensors where no inventory was asked for
  std::int64_t device = 0;
  std::uint64_t retries = 0;  ///< times that the allocator gave its cache back to go on
  bool has_inventory = false;
  /// Whether its training began; if not, training_peak is empty.
  bool trained = false;
};

struct TraceReport {
  std::vector<std::string> command;
  ClusterSpec cluster;  ///< GPU, margin, ranks
  std::optional<std::int64_t> played_rank;
  TraceOutcome outcome = TraceOutcome::failed;
  std::string message;  ///< of a failure, in the program's words
  bool fits = false;
  std::vector<TracedRank> ranks;  ///< the worst first
  std::vector<OutsideTerm> outside;
  std::vector<ProbedAnswer> answers;  ///< of all processes
  std::vector<std::pair<std::string, std::uint64_t>> unimplemented;
  std::vector<std::string> assumptions;
  std::vector<std::pair<std::string, std::string>> versions;
  Diagnostics diagnostics;
};

}  // namespace qlp

// Why a plan takes what it takes: its phases, and what was alive at a peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "estimate/report.h"

namespace qlp {

struct ExplainOptions {
  std::optional<std::string> phase{};  ///< a phase's name ("micro2.backward"); none: the peak of the whole run
  std::optional<std::int64_t> rank{};  ///< none: the worst
  std::size_t top = 40;                ///< places listed
  bool colors = false;
};

/// The plan's timeline and the inventory of a peak, laid out as the oracle's inventory.py lists the real stack's, so
/// that the two can be laid side by side: `MiB in N blocks (count x bytes, ...)  op < module`, largest first, the same
/// place of all layers in one line. Errors: a plan that did not run, an unknown phase or rank.
Result<std::string> explain_text(const Report& report, std::string_view plan, const ExplainOptions& options = {});

}  // namespace qlp

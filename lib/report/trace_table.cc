#include "report/trace_table.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "estimate/ledger.h"
#include "report/format.h"

namespace qlp {
namespace {

std::string command_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.size() > 110 ? text.substr(0, 107) + "..." : text;
}

/// Of each kind of phase (the digits in a name do not count) the first, and every one that needs more than those
/// before it.
std::vector<const PhaseReport*> telling_phases(const std::vector<PhaseReport>& phases, bool all) {
  std::vector<const PhaseReport*> out;
  std::map<std::string, LedgerFigures> most;
  for (const PhaseReport& phase : phases) {
    const auto [entry, first] = most.try_emplace(phase.phase, phase.peak);
    const bool more = phase.peak.allocated > entry->second.allocated || phase.peak.reserved > entry->second.reserved;
    if (all || first || more) out.push_back(&phase);
    if (more) entry->second = phase.peak;
  }
  return out;
}

std::string phase_rows(const TracedRank& traced, const TableOptions& options) {
  TextTable table{{"phase", "allocated GiB", "active GiB", "reserved GiB", "held after GiB"}, 1};
  for (const PhaseReport* phase : telling_phases(traced.report.phases, options.verbose)) {
    const bool peak = phase->name == traced.report.peak.phase_label;
    table.add({{phase->name, peak ? Color::strong : Color::plain},
               {gib(phase->peak.allocated)},
               {gib(phase->peak.active)},
               {gib(phase->peak.reserved)},
               {gib(phase->held.allocated)}});
  }
  return table.text(options.colors);
}

std::string rank_name(const TracedRank& traced, const TraceReport& report) {
  std::string text = "rank " + std::to_string(traced.report.rank);
  if (report.cluster.world_size > 1) text += " of " + std::to_string(report.cluster.world_size);
  const bool same_rank = std::ranges::count_if(report.ranks, [&](const TracedRank& other) {
                           return other.report.rank == traced.report.rank;
                         }) > 1;
  return same_rank ? text + ", device " + std::to_string(traced.device) : text;
}

std::string rank_line(const TracedRank& traced, const TraceReport& report) {
  const PeakReport& peak = traced.report.peak;
  return rank_name(traced, report) + ": peak " + gib(peak.figures.allocated) + " GiB allocated in " + peak.phase_label +
         ", " + gib(peak.figures.reserved) + " reserved, device " + gib(peak.device_used) + "\n";
}

std::string equation(const TraceReport& report) {
  const PeakReport& peak = report.ranks.front().report.peak;
  std::string text = "device " + gib(peak.device_used) + " = reserved " + gib(peak.figures.reserved);
  for (const OutsideTerm& term : report.outside) text += " + " + term.name + " " + gib(term.bytes);
  text += "; headroom " + gib(peak.headroom) + " = capacity " + gib(peak.capacity) + " - margin " +
          gib(margin_of(report.cluster)) + " - device " + gib(peak.device_used);
  return wrapped(text, 2) + "\n";
}

std::string inventory(const TracedRank& traced, bool verbose) {
  std::string text = "\nAlive at the peak, in MiB:\n";
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i)
    if (const Bytes bytes = traced.report.peak.categories[i]; bytes != Bytes{})
      text += "  " + std::string{kCategoryNames[i]} + " " + mib(bytes) + "\n";
  std::size_t left = verbose ? traced.report.top_tensors.size() : 20;
  for (const InventoryItem& item : traced.report.top_tensors) {
    if (left-- == 0) break;
    text += "  " + mib(item.allocated) + " in " + std::to_string(item.count) + " blocks  " +
            std::string{name_of(item.category)} + "  " + item.op +
            (item.op.empty() || item.module.empty() ? "" : " < ") + item.module + "\n";
  }
  return text;
}

std::string answers(const TraceReport& report, bool verbose) {
  if (report.answers.empty()) return {};
  std::string text = "\nRead from the GPU though no kernel ran, and answered by rule (--answer sets them):\n";
  std::size_t left = verbose ? report.answers.size() : 12;
  for (const ProbedAnswer& answer : report.answers) {
    if (left-- == 0) {
      text += "  and " + std::to_string(report.answers.size() - 12) + " places more (-v shows them)\n";
      break;
    }
    text += "  " + answer.place + ": " + answer.operation + " " + answer.kind + " = " + answer.value +
            (answer.count > 1 ? ", " + std::to_string(answer.count) + " times" : "") + "\n";
  }
  return text;
}

std::string verdict(const TraceReport& report, bool colors) {
  switch (report.outcome) {
    case TraceOutcome::ran:
      return report.fits ? colored("fits", Color::good, colors) : colored("does not fit", Color::bad, colors);
    case TraceOutcome::out_of_memory:
      return colored("does not fit", Color::bad, colors) + ": out of memory";
    case TraceOutcome::failed:
      return colored("no verdict", Color::bad, colors) + ": the program failed";
    case TraceOutcome::hung:
      return colored("no verdict", Color::bad, colors) + ": the program hung";
  }
  return {};
}

}  // namespace

std::string trace_table(const TraceReport& report, const TableOptions& options) {
  std::string out;
  if (!options.brief) {
    out += command_line(report.command) + "\non a null " + report.cluster.gpu.name + ", " +
           gib(report.cluster.gpu.capacity) + " GiB";
    std::string separator = "; ";
    for (const auto& [name, version] : report.versions) {
      out += separator;
      out += name;
      out += " " + version;
      separator = ", ";
    }
    out += "\n\n";
  }
  if (!report.ranks.empty()) {
    out += phase_rows(report.ranks.front(), options) + "\n";
    for (const TracedRank& traced : report.ranks) out += rank_line(traced, report);
  }
  out += verdict(report, options.colors) + "\n";
  if (!report.message.empty()) out += wrapped(report.message, 2) + "\n";
  if (options.brief) return out;
  if (!report.ranks.empty()) out += equation(report);
  if (!report.ranks.empty() && report.ranks.front().has_inventory)
    out += inventory(report.ranks.front(), options.verbose);
  out += answers(report, options.verbose);
  std::string findings;
  for (const Diagnostic& d : report.diagnostics)
    findings +=
        std::string{name_of(d.severity)} + ": " + wrapped(d.message + (d.hint.empty() ? "" : "; " + d.hint), 2) + "\n";
  if (!findings.empty()) out += "\n" + findings;
  if (options.verbose)
    for (const std::string& text : report.assumptions) out += wrapped("assumed: " + text, 2) + "\n";
  return out;
}

}  // namespace qlp

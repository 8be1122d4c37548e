#include "estimate/rank_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tensor/op.h"

namespace qlp {
namespace {

constexpr std::size_t kTopTensors = 20;

LedgerFigures figures(const Phase& phase) {
  return {Bytes{phase.requested.bytes}, Bytes{phase.allocated.bytes}, Bytes{phase.active.bytes},
          Bytes{phase.reserved.bytes}};
}

LedgerFigures figures(const MemoryStats& now) {
  return {Bytes{now.requested.current}, Bytes{now.allocated.current}, Bytes{now.active.current},
          Bytes{now.reserved.current}};
}

CategoryBytes by_category(const std::vector<LiveAllocation>& live) {
  CategoryBytes sums{};
  for (const auto& block : live) sums[static_cast<std::size_t>(block.label.category)] += Bytes{block.size};
  return sums;
}

/// `by_size`: blocks of one item have one size.
std::vector<InventoryItem> inventory(const std::vector<LiveAllocation>& live, const StringTable& modules,
                                     bool by_size = false) {
  std::map<std::tuple<Category, NameId, NameId, std::uint64_t>, InventoryItem> grouped;
  for (const auto& block : live) {
    auto& item = grouped[{block.label.category, block.label.op, block.label.module, by_size ? block.size : 0}];
    if (item.allocated == Bytes{}) {
      item.category = block.label.category;
      item.op = name_of(static_cast<Op>(block.label.op));
      item.module = modules.name(block.label.module);
      item.count = 0;
    }
    ++item.count;
    item.requested += Bytes{block.requested};
    item.allocated += Bytes{block.size};
  }
  std::vector<InventoryItem> items;
  for (auto& [key, item] : grouped) items.push_back(std::move(item));
  std::stable_sort(items.begin(), items.end(),
                   [](const InventoryItem& a, const InventoryItem& b) { return a.allocated > b.allocated; });
  return items;
}

void raise(LedgerFigures& most, const LedgerFigures& other) {
  most.requested = std::max(most.requested, other.requested);
  most.allocated = std::max(most.allocated, other.allocated);
  most.active = std::max(most.active, other.active);
  most.reserved = std::max(most.reserved, other.reserved);
}

/// The peak over the phases that `counts` holds for.
template <class Predicate>
std::pair<PeakReport, const Phase*> peak_over(const Timeline& timeline, Predicate counts) {
  PeakReport peak;
  const Phase* highest = nullptr;
  for (const Phase& phase : timeline.phases()) {
    if (!counts(phase.name)) continue;
    if (!highest || phase.allocated.bytes > highest->allocated.bytes) highest = &phase;
    raise(peak.figures, figures(phase));
  }
  if (highest) peak.phase_label = highest->name, peak.phase = glossary_phase(highest->name);
  return {peak, highest};
}

}  // namespace

std::string glossary_phase(std::string_view name) {
  const auto dot = name.find('.');
  const std::string_view kind = dot == std::string_view::npos ? name : name.substr(dot + 1);
  return std::string(kind == "optimizer" ? "optimizer_step" : kind);
}

bool is_of_training(std::string_view phase) {
  return phase != "load" && phase != "adapter" && phase != "prepare" && phase != "evaluation" &&
         glossary_phase(phase) != "save";
}

RankReport rank_report(const DryRun& run, std::int64_t rank, bool with_inventories) {
  const Timeline& timeline = run.timeline;
  RankReport report;
  report.rank = rank;
  const auto [whole, whole_phase] = peak_over(timeline, [](std::string_view) { return true; });
  const auto [training, training_phase] = peak_over(timeline, is_of_training);
  report.peak = whole, report.training_peak = training;
  if (whole_phase) {
    const auto live = timeline.live_at(whole_phase->allocated.event);
    report.peak.categories = by_category(live);
    report.top_tensors = inventory(live, run.modules);
    if (report.top_tensors.size() > kTopTensors) report.top_tensors.resize(kTopTensors);
  }
  if (training_phase == whole_phase)
    report.training_peak.categories = report.peak.categories;
  else if (training_phase)
    report.training_peak.categories = by_category(timeline.live_at(training_phase->allocated.event));
  for (std::size_t i = 0; i < timeline.phases().size(); ++i) {
    const Phase& phase = timeline.phases()[i];
    PhaseReport row;
    row.name = phase.name, row.phase = glossary_phase(phase.name);
    row.peak = figures(phase), row.held = figures(phase.end);
    row.host_peak = Bytes{run.host[i].peak.total()}, row.host_held = Bytes{run.host[i].held.total()};
    if (with_inventories) {
      const auto live = timeline.live_at(phase.allocated.event);
      row.categories = by_category(live);
      row.inventory = inventory(live, run.modules, true);
    }
    report.phases.push_back(std::move(row));
  }
  report.persistent = figures(run.end);
  report.persistent_categories = by_category(timeline.live_at(run.last_event));
  return report;
}

void add_slowest(RankReport& report, const Timeline& timeline, const ReplayOutcome& outcome) {
  const auto peaks = [](const MemoryStats& stats) {
    return LedgerFigures{Bytes{stats.requested.peak}, Bytes{stats.allocated.peak}, Bytes{stats.active.peak},
                         Bytes{stats.reserved.peak}};
  };
  report.peak.slowest = peaks(outcome.stats);
  LedgerFigures training;
  for (std::size_t i = 0; i < outcome.phases.size(); ++i)
    if (is_of_training(timeline.phases()[i].name)) raise(training, peaks(outcome.phases[i]));
  report.training_peak.slowest = training;
}

void set_limited(RankReport& report, const Timeline& timeline, const ReplayOutcome& outcome) {
  report.peak.reserved_when_limited = Bytes{outcome.stats.reserved.peak};
  Bytes training;
  for (std::size_t i = 0; i < outcome.phases.size(); ++i)
    if (is_of_training(timeline.phases()[i].name))
      training = std::max(training, Bytes{outcome.phases[i].reserved.peak});
  report.training_peak.reserved_when_limited = training;
}

}  // namespace qlp

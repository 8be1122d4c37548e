#include "report/explain.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/text.h"
#include "report/format.h"
#include "report/ledger_text.h"
#include "report/step_text.h"
#include "report/table.h"

namespace qlp {
namespace {

/// The blocks that one place of the step made.
struct PlaceRow {
  Bytes requested;
  Bytes allocated;
  std::uint64_t blocks = 0;
  std::map<std::uint64_t, std::uint64_t> sizes;  ///< blocks by requested bytes
  Category category = Category::activations;
  std::string text;
};

std::string place_of(const InventoryItem& item) {
  std::string text = item.op;
  if (!item.module.empty()) text += (text.empty() ? "" : " < ") + without_layer(item.module);
  if (!item.tensor.empty()) text += (text.empty() ? "" : " ") + ("[" + item.tensor + "]");
  return text.empty() ? "?" : text;
}

std::vector<PlaceRow> places(const std::vector<InventoryItem>& items) {
  std::map<std::tuple<Category, std::string>, PlaceRow> by_place;
  for (const auto& item : items) {
    PlaceRow& place = by_place[{item.category, place_of(item)}];
    place.requested += item.requested;
    place.allocated += item.allocated;
    place.blocks += item.count;
    if (item.count > 0) place.sizes[item.requested.count() / item.count] += item.count;
  }
  std::vector<PlaceRow> out;
  for (auto& [key, place] : by_place) {
    std::tie(place.category, place.text) = key;
    out.push_back(std::move(place));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, [](const PlaceRow& p) { return p.requested; });
  return out;
}

/// "224x134217728, 1x4096": the three sizes that occur most.
std::string sizes_text(const PlaceRow& place) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> common{place.sizes.begin(), place.sizes.end()};
  std::ranges::stable_sort(common, std::ranges::greater{}, [](const auto& entry) { return entry.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(common.size(), 3); ++i)
    text += (i ? ", " : "") + std::to_string(common[i].second) + "x" + std::to_string(common[i].first);
  return text;
}

std::string inventory_text(const std::vector<InventoryItem>& items, std::size_t top) {
  std::string out;
  std::size_t listed = 0;
  const auto all = places(items);
  for (const auto& place : all) {
    if (listed++ == top) break;
    std::array<char, 64> amount{};
    std::snprintf(amount.data(), amount.size(), "%12.3f MiB in %4llu blocks",
                  static_cast<double>(place.requested.count()) / (1 << 20),
                  static_cast<unsigned long long>(place.blocks));
    out += std::string{amount.data()} + " (" + sizes_text(place) + ")  " + place.text + "  {" +
           std::string{name_of(place.category)} + "}\n";
  }
  if (all.size() > top) out += "  and " + std::to_string(all.size() - top) + " smaller places\n";
  return out;
}

std::string categories_text(const CategoryBytes& categories, bool colors) {
  TextTable table{{"category", "allocated MiB", "bytes"}, 1};
  Bytes total;
  for (std::size_t i = 0; i < categories.size(); ++i) {
    if (categories[i] == Bytes{}) continue;
    total += categories[i];
    table.add({{std::string{kCategoryNames[i]}}, {mib(categories[i])}, {std::to_string(categories[i].count())}});
  }
  table.add({{"sum"}, {mib(total)}, {std::to_string(total.count())}});
  return table.text(colors);
}

std::string timeline_text(const RankReport& rank, bool colors) {
  TextTable table{
      {"phase", "peak allocated MiB", "peak reserved MiB", "held allocated MiB", "held reserved MiB", "peak host MiB"},
      1};
  for (const auto& phase : rank.phases) {
    const bool peak = phase.name == rank.peak.phase_label;
    table.add({{phase.name, peak ? Color::strong : Color::plain},
               {mib(phase.peak.allocated), peak ? Color::strong : Color::plain},
               {mib(phase.peak.reserved)},
               {mib(phase.held.allocated)},
               {mib(phase.held.reserved)},
               {mib(phase.host_peak)}});
  }
  return table.text(colors);
}

std::string peak_line(std::string_view where, const LedgerFigures& figures) {
  return "peak " + std::to_string(figures.requested.count()) + " bytes (" + mib(figures.requested) +
         " MiB) requested, " + mib(figures.allocated) + " MiB allocated, " + mib(figures.active) + " MiB active, " +
         mib(figures.reserved) + " MiB reserved: " + std::string{where} + "\n";
}

Unexpected<Diagnostics> failure(std::string code, std::string message, std::string hint) {
  return Unexpected<Diagnostics>{{{.severity = Severity::error,
                                   .code = std::move(code),
                                   .message = std::move(message),
                                   .key_path = {},
                                   .position = {},
                                   .hint = std::move(hint)}}};
}

Unexpected<Diagnostics> unknown(std::string_view what, std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> words{known.begin(), known.end()};
  const auto near = closest(word, words);
  return failure("unknown-" + std::string{what}, "no " + std::string{what} + " named \"" + std::string{word} + "\"",
                 near ? "did you mean " + std::string{*near} + "?" : "known: " + join(words));
}

}  // namespace

Result<std::string> explain_text(const Report& report, std::string_view plan_name, const ExplainOptions& options) {
  const auto plan = std::ranges::find(report.plans, plan_name, [](const PlanReport& p) { return p.plan.name; });
  if (plan == report.plans.end()) {
    std::vector<std::string> names;
    for (const auto& p : report.plans) names.push_back(p.plan.name);
    return unknown("plan", plan_name, names);
  }
  if (!plan->applicable() || plan->ranks.empty())
    return failure("plan-cannot-run", plan->plan.name + " cannot run: " + plan->reason(), "");

  auto rank = plan->ranks.begin();
  if (options.rank) {
    rank = std::ranges::find(plan->ranks, *options.rank, &RankReport::rank);
    if (rank == plan->ranks.end() && plan->ranks.size() == 1) rank = plan->ranks.begin();  // all ranks are alike
    if (rank == plan->ranks.end()) {
      std::vector<std::string> known;
      for (const auto& r : plan->ranks) known.push_back(std::to_string(r.rank));
      return unknown("rank", std::to_string(*options.rank), known);
    }
  }

  std::string out =
      job_line(report.job) + "\nplan " + plan->plan.name + ", rank " + std::to_string(rank->rank) + "\n\n";
  if (!options.phase) {
    out += timeline_text(*rank, options.colors) + "\n";
    out += "GiB: " + ledger_text(*plan, rank->peak, report.job.cluster);
    if (const std::string reserved = reserved_text(rank->peak); !reserved.empty()) out += "  " + wrapped(reserved, 2);
    out += "\n";
    out += categories_text(rank->peak.categories, options.colors) + "\n";
    out += peak_line(rank->peak.phase_label, rank->peak.figures) + inventory_text(rank->top_tensors, options.top);
    const std::string step = step_text(*plan, report.job, options.colors);
    return step.empty() ? out : out + "\n" + step;
  }
  const auto phase = std::ranges::find(rank->phases, *options.phase, &PhaseReport::name);
  if (phase == rank->phases.end()) {
    std::vector<std::string> names;
    for (const auto& p : rank->phases) names.push_back(p.name);
    return unknown("phase", *options.phase, names);
  }
  out += categories_text(phase->categories, options.colors) + "\n";
  return out + peak_line(phase->name, phase->peak) + inventory_text(phase->inventory, options.top);
}

}  // namespace qlp

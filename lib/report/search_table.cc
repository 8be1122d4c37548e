#include "report/search_table.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/text.h"
#include "report/format.h"

namespace qlp {
namespace {

std::string title(const SearchReport& report) {
  const SearchKey key = report.options.key;
  std::string text = (wants_fewest(key) ? "least " : "largest ") + std::string(name_of(key)) + " that fits";
  if (report.options.along) text += ", by " + std::string(name_of(report.options.along->key));
  return text;
}

Cell verdict_cell(const SearchedPlan& plan) {
  if (plan.found) return {plan.found->report.cache_given_back ? "fits, tightly" : "fits", Color::good};
  return {"does not fit", Color::bad};
}

bool cannot_run(const SearchedPlan& plan) { return !plan.found && plan.beyond && !plan.beyond->report.applicable(); }

/// "24 lacks 0.35", in GiB, or why the neighbour is none.
std::string beyond_text(const SearchedPlan& plan, const SearchReport& report) {
  if (!plan.beyond) return wants_fewest(report.options.key) ? "" : "no more tried";
  const std::string value = std::to_string(plan.beyond->value);
  if (!plan.beyond->report.applicable()) return value + " cannot run";
  const auto lack = lacking(plan.beyond->report);
  return lack ? value + " lacks " + gib(*lack) : value + " does not fit";
}

std::string rows(const SearchReport& report, const TableOptions& options) {
  const bool timed = std::ranges::any_of(
      report.plans, [](const SearchedPlan& p) { return p.tokens_per_second_upper_bound.has_value(); });
  std::vector<std::string> headings{"plan",          "verdict",    std::string(name_of(report.options.key)),
                                    "allocated GiB", "device GiB", "headroom GiB",
                                    "beyond, GiB"};
  if (timed) headings.insert(headings.end(), {"step s >=", "tokens/s <="});
  TextTable table{headings, 2};
  for (const SearchedPlan& plan : report.plans) {
    if (cannot_run(plan)) continue;
    const bool best = report.recommended == plan.plan.name;
    std::vector<Cell> row{{plan.plan.name, best ? Color::strong : Color::plain}, verdict_cell(plan)};
    if (plan.found) {
      const PeakReport& peak = plan.found->report.ranks.front().peak;
      row.push_back({std::to_string(plan.found->value), best ? Color::strong : Color::plain});
      for (const auto& figure : {gib(peak.figures.allocated), gib(peak.device_used), gib(peak.headroom)})
        row.push_back({figure});
    } else {
      row.resize(row.size() + 4);
    }
    row.push_back({beyond_text(plan, report)});
    if (plan.tokens_per_second_upper_bound) {
      row.push_back({three_digits(plan.found->report.step_time->lower_bound)});
      row.push_back({three_digits(*plan.tokens_per_second_upper_bound)});
    }
    table.add(std::move(row));
  }
  return table.text(options.colors);
}

/// A row for each plan, a column for each value that was gone along; the best of a column stands out.
std::string grid(const SearchReport& report, const TableOptions& options) {
  const SearchAlong& along = *report.options.along;
  const bool fewest = wants_fewest(report.options.key);
  std::map<std::int64_t, std::int64_t> best;
  for (const SearchedPlan& plan : report.plans) {
    if (!plan.found) continue;
    const auto [at, first] = best.try_emplace(*plan.along, plan.found->value);
    if (!first) at->second = fewest ? std::min(at->second, plan.found->value) : std::max(at->second, plan.found->value);
  }
  std::vector<std::string> headings{std::string(name_of(along.key))};
  for (const std::int64_t value : along.values) headings.push_back(std::to_string(value));
  TextTable table{headings, 1};
  for (std::size_t at = 0; at < report.plans.size(); at += along.values.size()) {
    const auto searched = std::span(report.plans).subspan(at, along.values.size());
    if (std::ranges::all_of(searched, cannot_run)) continue;
    std::vector<Cell> row{{searched.front().plan.name}};
    for (const SearchedPlan& plan : searched) {
      if (!plan.found)
        row.push_back({"-", Color::faint});
      else
        row.push_back({(plan.beyond || fewest ? "" : ">= ") + std::to_string(plan.found->value),
                       plan.found->value == best[*plan.along] ? Color::strong : Color::plain});
    }
    table.add(std::move(row));
  }
  return table.text(options.colors);
}

std::string recommendation(const SearchReport& report, bool colors) {
  if (!report.recommended) return colored("nothing fits", Color::bad, colors) + "\n";
  const SearchedPlan& best = report.plans.front();
  std::string text = "recommended: " + colored(*report.recommended, Color::strong, colors) + " with " +
                     std::string(name_of(report.options.key)) + " " + std::to_string(best.found->value);
  const Resources& need = *report.resources;
  text += ", on " + std::to_string(need.gpus) + (need.gpus == 1 ? " GPU" : " GPUs");
  if (need.nodes > 1) text += " of " + std::to_string(need.nodes) + " nodes";
  return text + " with " + gib(need.gpu_memory) + " GiB each\n";
}

/// The plans that run with no value at all, and, if that is asked for, why.
std::string refused(const SearchReport& report, bool why) {
  std::string names, reasons, last;
  for (const SearchedPlan& plan : report.plans) {
    if (!cannot_run(plan) || plan.plan.name == last) continue;
    last = plan.plan.name;
    names += (names.empty() ? "" : ", ") + last;
    reasons += wrapped(last + ": " + harmless(plan.beyond->report.reason(), "\n"), 2) + "\n";
  }
  if (names.empty() || why) return reasons;
  return wrapped("cannot run: " + names + " (-v says why)", 2) + "\n";
}

}  // namespace

std::string search_table(const SearchReport& report, const TableOptions& options) {
  const bool along = report.options.along.has_value();
  const std::string table = along ? grid(report, options) : rows(report, options);
  if (options.brief) return table;
  std::string out = job_line(report.job) + "\n" + title(report) + "\n\n" + table;
  if (!along || !found_any(report)) out += "\n" + recommendation(report, options.colors);
  const std::string rest = refused(report, options.verbose);
  return rest.empty() ? out : out + "\n" + rest;
}

}  // namespace qlp

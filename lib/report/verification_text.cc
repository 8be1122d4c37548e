#include "report/verification_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/text.h"
#include "report/format.h"
#include "report/verification_json.h"

namespace qlp {
namespace {

constexpr std::string_view kDash = "-";

const ComparedFigure* find(const RankVerification& rank, std::string_view phase, std::string_view name) {
  const auto found = std::ranges::find_if(
      rank.figures, [&](const ComparedFigure& figure) { return figure.phase == phase && figure.name == name; });
  return found == rank.figures.end() ? nullptr : &*found;
}

std::string mib_or_dash(const std::optional<Bytes>& amount) { return amount ? mib(*amount) : std::string(kDash); }

std::string residual_text(const ComparedFigure& figure) {
  const auto residual = figure.unaccounted();
  if (!residual) return std::string(kDash);
  return (residual->count() > 0 ? "+" : "") + std::to_string(residual->count());
}

bool is_near(const ComparedFigure& figure, const Tolerance& tolerance) {
  return figure.measured && figure.predicted && tolerance.allows(*figure.measured, *figure.predicted);
}

/// Measured, predicted, unaccounted.
void add_cells(std::vector<Cell>& row, const ComparedFigure& figure, const Tolerance& tolerance) {
  const Color color = !figure.judged ? Color::plain : is_near(figure, tolerance) ? Color::good : Color::bad;
  row.push_back({mib_or_dash(figure.measured)});
  row.push_back({mib_or_dash(figure.predicted)});
  row.push_back({residual_text(figure), color});
}

/// Four decimals tell losses apart.
std::string loss_text(const std::vector<double>& losses, bool last) {
  if (losses.empty()) return std::string(kDash);
  std::array<char, 64> buffer{};
  const double loss = last ? losses.back() : losses.front();
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), loss, std::chars_format::fixed, 4).ptr;
  return {buffer.data(), end};
}

std::string ranks_table(const Verification& v, bool colors) {
  TextTable table({"rank", "end", "allocated MiB", "predicted", "unaccounted B", "reserved MiB", "predicted",
                   "unaccounted B", "first loss", "last loss"},
                  2);
  const bool computes = v.device != VerifyDevice::null;
  for (const RankVerification& rank : v.ranks) {
    std::vector<Cell> row{{std::to_string(rank.rank)},
                          {std::string(name_of(rank.end)), rank.end == RankEnd::finished ? Color::good : Color::bad}};
    for (const std::string_view name : {"allocated", "reserved"})
      if (const ComparedFigure* figure = find(rank, "peak", name))
        add_cells(row, *figure, v.tolerance);
      else
        row.insert(row.end(), 3, Cell{std::string(kDash)});
    for (const bool last : {false, true})
      row.push_back({computes ? loss_text(rank.losses, last) : std::string("not computed")});
    table.add(std::move(row));
  }
  return table.text(colors);
}

bool is_of_phase(const ComparedFigure& figure) {
  return figure.phase != "peak" && figure.phase != "training_peak" && figure.phase != "end";
}

std::string phases_table(const RankVerification& rank, const Tolerance& tolerance, bool colors) {
  TextTable table(
      {"phase", "allocated MiB", "predicted", "unaccounted B", "reserved MiB", "predicted", "unaccounted B"}, 1);
  std::vector<Cell> row;
  for (const ComparedFigure& figure : rank.figures) {  // of a phase the allocated figure comes before the reserved one
    if (!is_of_phase(figure)) continue;
    if (figure.name == "allocated") row = {{figure.phase}};
    if (figure.name == "allocated" || figure.name == "reserved") add_cells(row, figure, tolerance);
    if (figure.name == "reserved") table.add(std::move(row));
  }
  return "rank " + std::to_string(rank.rank) + ", peaks by phase:\n" + table.text(colors);
}

bool is_of_device(const ComparedFigure& figure) {
  constexpr std::string_view kOfAllocator[] = {"requested", "allocated", "active", "reserved"};
  return figure.phase == "peak" && std::ranges::find(kOfAllocator, figure.name) == std::end(kOfAllocator);
}

std::string device_table(const RankVerification& rank, const Tolerance& tolerance, bool colors) {
  TextTable table({"outside the allocator", "how", "measured MiB", "predicted MiB", "unaccounted B"}, 2);
  for (const ComparedFigure& figure : rank.figures) {
    if (!is_of_device(figure)) continue;
    std::vector<Cell> row{{figure.name}, {figure.source}};
    add_cells(row, figure, tolerance);
    table.add(std::move(row));
  }
  return "rank " + std::to_string(rank.rank) + " on " + rank.device + ":\n" + table.text(colors);
}

/// Categories at the peak, then the blocks that make the difference.
std::string peak_tables(const ComparedPeak& peak, bool colors) {
  TextTable categories({"category", "measured MiB", "predicted MiB", "unaccounted B"}, 1);
  for (const ComparedCategory& c : peak.categories)
    categories.add({{std::string(name_of(c.category))},
                    {mib(c.measured)},
                    {mib(c.predicted)},
                    {std::to_string(difference(c.measured, c.predicted).count())}});
  std::string out = "alive at the peak of " + peak.phase + ":\n" + categories.text(colors);
  if (peak.tensors.empty()) return out + "\nevery block has its like in the prediction\n";
  TextTable tensors({"measured as", "predicted as", "bytes each", "measured", "predicted"}, 2);
  const auto words = [](const std::string& text) { return text.empty() ? std::string(kDash) : text; };
  for (const TensorDifference& t : peak.tensors)
    tensors.add({{words(t.measured_as)},
                 {words(t.predicted_as)},
                 {with_commas(t.size.count())},
                 {std::to_string(t.measured)},
                 {std::to_string(t.predicted)}});
  return out + "\nblocks that make the difference:\n" + tensors.text(colors);
}

/// How a rank that did not finish ended, and the last that it wrote.
std::string failure_text(const RankVerification& rank) {
  std::string out = "rank " + std::to_string(rank.rank) + ": " + std::string(name_of(rank.end)) + " in " + rank.state;
  if (!rank.message.empty()) out += ": " + rank.message;
  out += "\n";
  for (std::size_t begin = 0; begin < rank.output.size();) {
    const std::size_t end = std::min(rank.output.find('\n', begin), rank.output.size());
    out += "  | " + rank.output.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out;
}

/// The judged figure that is off the most, null where none is off.
const ComparedFigure* worst(const Verification& v) {
  const ComparedFigure* most = nullptr;
  const auto off = [](const ComparedFigure& figure) {
    const auto residual = figure.unaccounted();
    return residual ? std::abs(residual->count()) : std::int64_t{0};
  };
  for (const RankVerification& rank : v.ranks)
    for (const ComparedFigure& figure : rank.figures)
      if (figure.judged && off(figure) > (most ? off(*most) : 0)) most = &figure;
  return most;
}

/// The first figure that one side has not got.
const ComparedFigure* without_counterpart(const Verification& v) {
  for (const RankVerification& rank : v.ranks)
    for (const ComparedFigure& figure : rank.figures)
      if (figure.judged && (!figure.measured || !figure.predicted)) return &figure;
  return nullptr;
}

std::string tolerance_text(const Tolerance& tolerance) {
  if (tolerance.share == 0) return exact_size(tolerance.bytes);
  return (tolerance.bytes > Bytes{} ? exact_size(tolerance.bytes) + " and " : "") + exact_percent(tolerance.share);
}

/// Steps that the scaler of a loss in float16 left out: until one is taken, there is no optimizer state.
std::string skipped_text(const Verification& v) {
  const auto rank = std::ranges::find_if(v.ranks, [](const RankVerification& r) { return !r.skipped_steps.empty(); });
  if (rank == v.ranks.end()) return "";
  std::string steps;
  for (const std::int64_t step : rank->skipped_steps) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  const bool all = static_cast<std::int64_t>(rank->skipped_steps.size()) == v.steps;
  return "skipped steps: " + steps + " of " + std::to_string(v.steps) +
         ": a gradient overflowed in float16, which halves the scale of the loss and updates nothing" +
         (all ? "; the optimizer has made no state, as the prediction has: more --steps reach one that is taken" : "") +
         "\n";
}

std::string verdict_text(const Verification& v, bool colors) {
  const std::string_view verdict = verdict_of(v);
  if (v.interrupted) return colored("interrupted", Color::bad, colors) + "\n";
  if (verdict == "out_of_memory")
    return colored("out of memory", Color::bad, colors) + ": the step does not run here\n";
  if (verdict == "failed") return colored("failed", Color::bad, colors) + ": the step could not be run to its end\n";
  const bool well = v.within_tolerance();
  std::string out = colored(well ? "within tolerance" : "outside tolerance", well ? Color::good : Color::bad, colors) +
                    " (" + tolerance_text(v.tolerance) + " of allocated)";
  if (const ComparedFigure* figure = worst(v))
    out += ": furthest off is " + figure->name + " in " + figure->phase + ", by " + residual_text(*figure) + " bytes";
  else if (const ComparedFigure* lone = without_counterpart(v))
    out +=
        ": " + lone->phase + " was " + (lone->measured ? "measured and not predicted" : "predicted and not measured");
  else
    out += well ? ": every judged figure is as predicted, to the byte"
                : ": every judged figure is as predicted, but a loss is no number";
  return out + "\n";
}

std::string heading(const Verification& v) {
  const bool torch = v.runner == VerifyRunner::torch;
  std::string out =
      "plan " + v.plan + (torch ? " by the libraries" : "") + " on " + std::string(name_of(v.device)) + ", ";
  if (v.alone)
    out += "rank " + std::to_string(v.ranks.front().rank) + " of " + std::to_string(v.world_size) + " played alone, " +
           (torch ? "" : "copies instead of the wire, ");
  else
    out += std::to_string(v.world_size) + (v.world_size == 1 ? " rank, " : " ranks, ");
  out += std::to_string(v.steps) + (v.steps == 1 ? " step" : " steps");
  for (const std::string& version : v.versions) out += ", " + version;
  return out + "\n\n";
}

}  // namespace

std::string verification_text(const Verification& v, const VerificationTextOptions& options) {
  std::string out = options.brief ? "" : heading(v);
  out += ranks_table(v, options.colors);
  if (!options.brief)
    for (const RankVerification& rank : v.ranks) {
      const bool shown = options.verbose || &rank == &v.ranks.front();
      if (shown && std::ranges::any_of(rank.figures, is_of_phase))
        out += "\n" + phases_table(rank, v.tolerance, options.colors);
      if (shown && std::ranges::any_of(rank.figures, is_of_device))
        out += "\n" + device_table(rank, v.tolerance, options.colors);
      if (shown && rank.peak) out += "\n" + peak_tables(*rank.peak, options.colors);
    }
  if (!v.finished()) {
    out += "\n";
    for (const RankVerification& rank : v.ranks)
      if (rank.end != RankEnd::finished) out += failure_text(rank);
  }
  return out + "\n" + skipped_text(v) + verdict_text(v, options.colors);
}

}  // namespace qlp

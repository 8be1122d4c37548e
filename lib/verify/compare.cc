#include "verify/compare.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "estimate/rank_report.h"
#include "verify/device_books.h"

namespace qlp {
namespace {

constexpr std::string_view kCounters = "counters of the allocator";

/// The figures of one span, `allocated` judged.
void add_ledger(std::vector<ComparedFigure>& out, const std::string& phase, std::string_view suffix,
                const std::optional<LedgerFigures>& measured, const std::optional<LedgerFigures>& predicted) {
  using Member = Bytes LedgerFigures::*;
  constexpr std::array<std::pair<std::string_view, Member>, 4> kFigures{{{"requested", &LedgerFigures::requested},
                                                                         {"allocated", &LedgerFigures::allocated},
                                                                         {"active", &LedgerFigures::active},
                                                                         {"reserved", &LedgerFigures::reserved}}};
  for (const auto& [name, member] : kFigures) {
    ComparedFigure figure{.name = std::string(name) + std::string(suffix), .phase = phase};
    if (measured) figure.measured = (*measured).*member;
    if (predicted) figure.predicted = (*predicted).*member;
    figure.source = measured ? kCounters : "the run has no such phase";
    figure.judged = member == &LedgerFigures::allocated;
    out.push_back(std::move(figure));
  }
}

void raise(LedgerFigures& most, const LedgerFigures& other) {
  most = {std::max(most.requested, other.requested), std::max(most.allocated, other.allocated),
          std::max(most.active, other.active), std::max(most.reserved, other.reserved)};
}

/// The peaks over the phases of training, from the first forward on, or over all.
std::optional<LedgerFigures> peak_of(const std::vector<MeasuredPhase>& phases, bool training_only) {
  std::optional<LedgerFigures> most;
  bool began = !training_only;
  for (const MeasuredPhase& phase : phases) {
    began = began || phase.name.find(".forward") != std::string::npos;
    if (began && (!training_only || is_of_training(phase.name))) raise(most ? *most : most.emplace(), phase.peak);
  }
  return most;
}

/// What was held when training had ended; evaluation and saving come after that.
std::optional<LedgerFigures> held_at_end(const std::vector<MeasuredPhase>& phases) {
  const auto last = std::find_if(phases.rbegin(), phases.rend(),
                                 [](const MeasuredPhase& phase) { return is_of_training(phase.name); });
  return last == phases.rend() ? std::nullopt : std::optional{last->held};
}

/// What a side that has no such phase had in it: nothing, where the other held nothing on the GPU then.
template <class Phase, class Figures>
std::optional<LedgerFigures> figures_of(const Phase* phase, Figures Phase::*which, bool nothing) {
  if (phase) return phase->*which;
  return nothing ? std::optional{LedgerFigures{}} : std::nullopt;
}

void add_phase(std::vector<ComparedFigure>& out, const MeasuredPhase* measured, const PhaseReport* predicted) {
  const std::string& name = measured ? measured->name : predicted->name;
  const bool nothing = (measured ? measured->peak : predicted->peak).reserved == Bytes{};
  add_ledger(out, name, "", figures_of(measured, &MeasuredPhase::peak, nothing),
             figures_of(predicted, &PhaseReport::peak, nothing));
  add_ledger(out, name, "_held", figures_of(measured, &MeasuredPhase::held, nothing),
             figures_of(predicted, &PhaseReport::held, nothing));
}

/// Phases of one name side by side; one that the other side has not got stands by itself, where it was.
void add_phases(std::vector<ComparedFigure>& out, const RankMeasurement& measured, const RankReport& predicted) {
  auto theirs = predicted.phases.begin();
  const auto end = predicted.phases.end();
  for (const MeasuredPhase& ours : measured.phases) {
    const auto same = std::find_if(theirs, end, [&](const PhaseReport& phase) { return phase.name == ours.name; });
    if (same == end) {
      add_phase(out, &ours, nullptr);
      continue;
    }
    for (; theirs != same; ++theirs) add_phase(out, nullptr, &*theirs);
    add_phase(out, &ours, &*theirs++);
  }
  for (; theirs != end; ++theirs) add_phase(out, nullptr, &*theirs);
}

/// Its own books, as what the device holds of it is CUDA's to choose.
void add_managed(std::vector<ComparedFigure>& out, const RankMeasurement& measured, const RankPrediction& predicted) {
  const auto paged = std::ranges::find(predicted.outside, true, &OutsideTerm::managed);
  if (paged == predicted.outside.end() && measured.managed_state == Bytes{}) return;
  const bool none = paged == predicted.outside.end();
  out.push_back({none ? "paged_optimizer_state" : paged->name, "peak", measured.managed_state,
                 none ? Bytes{} : paged->bytes, "what was asked of cudaMallocManaged, or on the CPU of the process"});
}

/// The predicted term of that name, none where there is none.
std::optional<Bytes> term(const std::vector<OutsideTerm>& outside, std::string_view name) {
  const auto found = std::ranges::find(outside, name, &OutsideTerm::name);
  return found == outside.end() ? std::nullopt : std::optional{found->bytes};
}

void add_device(std::vector<ComparedFigure>& out, const RankMeasurement& measured, const RankPrediction& predicted,
                const CompareOptions& options) {
  const DeviceBooks books = device_books(measured);
  const std::optional<Bytes> nccl = term(predicted.outside, "nccl");
  out.push_back({"cuda_context", "peak", books.context, term(predicted.outside, "cuda_context"), books.source});
  out.push_back({"library_overhead", "peak", books.libraries, term(predicted.outside, "library_overhead"),
                 books.source + "; cuBLAS handles and loaded kernels"});
  out.push_back({"cublas", "peak", books.cublas, std::nullopt, books.source + "; a part of library_overhead"});
  if (options.alone && nccl)
    out.push_back({"nccl", "peak", std::nullopt, nccl, "taken from the model: copies took the place of the wire"});
  else if (nccl || books.nccl > Bytes{})
    out.push_back({"nccl", "peak", books.nccl, nccl.value_or(Bytes{}), books.source});
  out.push_back({"used_by_others", "peak", measured.device.used_by_others, predicted.used_by_others,
                 measured.device.used_by_others ? "NVML, before the run" : "the driver does not tell"});
  if (!books.device_used) return;
  Bytes expected = predicted.report.peak.device_used;
  if (options.alone && nccl) expected.remove(*nccl);
  out.push_back({"device_used", "peak", books.device_used, expected,
                 books.peak_source + (options.alone && nccl ? "; without NCCL" : "")});
}

}  // namespace

std::vector<ComparedFigure> compare(const RankMeasurement& measured, const RankPrediction& predicted,
                                    const CompareOptions& options) {
  std::vector<ComparedFigure> out;
  const RankReport& report = predicted.report;
  add_ledger(out, "peak", "", peak_of(measured.phases, false), report.peak.figures);
  add_ledger(out, "training_peak", "", peak_of(measured.phases, true), report.training_peak.figures);
  add_ledger(out, "end", "", held_at_end(measured.phases), report.persistent);
  add_phases(out, measured, report);
  add_managed(out, measured, predicted);
  if (!measured.readings.empty()) add_device(out, measured, predicted, options);
  return out;
}

}  // namespace qlp

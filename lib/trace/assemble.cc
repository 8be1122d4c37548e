#include "trace/assemble.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <tuple>

#include "estimate/ledger.h"
#include "estimate/nccl_memory.h"
#include "estimate/outside_terms.h"

namespace qlp {
namespace {

constexpr std::array<std::string_view, 3> kBeforeTraining{"load", "adapter", "prepare"};

Diagnostic diagnostic(Severity severity, std::string code, std::string message, std::string hint = {}) {
  return {.severity = severity,
          .code = std::move(code),
          .message = std::move(message),
          .key_path = {},
          .position = {},
          .hint = std::move(hint)};
}

void take_phase(PeakReport& peak, const ProbedPhase& phase) {
  if (peak.phase.empty() || phase.peak.allocated > peak.figures.allocated) {
    peak.phase = phase.phase;
    peak.phase_label = phase.name;
  }
  peak.figures = larger(peak.figures, phase.peak);
}

void take_inventory(TracedRank& traced, const ProcessRecord& record) {
  for (const ProbedInventory& inventory : record.inventories) {
    if (inventory.device != traced.device) continue;
    traced.has_inventory = true;
    traced.report.top_tensors = inventory.items;
    for (const InventoryItem& item : inventory.items)
      traced.report.peak.categories[static_cast<std::size_t>(item.category)] += item.allocated;
  }
}

/// The ranks of one process: one for each device on which it held memory.
std::vector<TracedRank> ranks_of_process(const ProcessRecord& record, std::int64_t rank) {
  std::map<std::int64_t, TracedRank> by_device;
  for (const ProbedPhase& phase : record.phases) {
    TracedRank& traced = by_device[phase.device];
    traced.device = phase.device;
    traced.report.rank = rank;
    traced.retries = phase.retries;
    traced.report.phases.push_back({.name = phase.name, .phase = phase.phase, .peak = phase.peak, .held = phase.held});
    take_phase(traced.report.peak, phase);
    if (std::ranges::find(kBeforeTraining, phase.phase) == kBeforeTraining.end()) {
      take_phase(traced.report.training_peak, phase);
      traced.trained = traced.trained || phase.phase == "forward";
    }
    if (phase.phase == "optimizer_step" || phase.phase == "zero_grad" || phase.phase == "end")
      traced.report.persistent = phase.held;
  }
  std::vector<TracedRank> ranks;
  for (auto& [device, traced] : by_device) {
    take_inventory(traced, record);
    ranks.push_back(std::move(traced));
  }
  return ranks;
}

void add_answers(std::vector<ProbedAnswer>& all, const ProcessRecord& record) {
  for (const ProbedAnswer& answer : record.answers) {
    const auto same = std::ranges::find_if(all, [&](const ProbedAnswer& other) {
      return std::tie(other.kind, other.operation, other.place) ==
             std::tie(answer.kind, answer.operation, answer.place);
    });
    if (same == all.end()) {
      all.push_back(answer);
    } else {
      same->count += answer.count;
    }
  }
}

void add_library(TraceReport& report, const ProcessRecord& record) {
  for (const auto& [name, calls] : record.unimplemented) {
    const auto same = std::ranges::find(report.unimplemented, name, [](const auto& entry) { return entry.first; });
    if (same == report.unimplemented.end()) {
      report.unimplemented.emplace_back(name, calls);
    } else {
      same->second += calls;
    }
  }
  for (const std::string& text : record.assumptions)
    if (std::ranges::find(report.assumptions, text) == report.assumptions.end()) report.assumptions.push_back(text);
}

/// What the program did not do that a training program does, said as one would say it to its owner.
std::string why_nothing_was_recorded(const std::vector<ProcessRecord>& records, const ProgramRun& run) {
  const bool failed = !run.end.succeeded();
  if (run.output.find("No module named 'torch'") != std::string::npos)
    return "there is no torch in the Python that ran it";
  if (records.empty())
    return failed ? "it failed before a Python process of it imported torch"
                  : "no Python process of it imported torch; a Python that is started with -I, -E or -S runs no probe";
  const auto wrong = std::ranges::find_if(records, [](const ProcessRecord& r) { return r.cuda.empty(); });
  if (wrong != records.end())
    return "its torch " + wrong->torch + " is built for " + (wrong->hip.empty() ? "the CPU" : "ROCm") +
           ", not for CUDA: install a CUDA build of the same version (no GPU is needed)";
  if (run.end.signal != 0) return "that was before the end of its first phase";
  return failed ? "it failed before anything was on the GPU" : "it put nothing on the GPU";
}

std::string end_text(const ProgramRun& run) {
  switch (run.how) {
    case RunEnd::not_started:
      return run.message;
    case RunEnd::hung:
      return "it printed nothing and got nowhere for longer than --timeout, and was ended";
    case RunEnd::interrupted:
      return "interrupted";
    case RunEnd::ended:
      return "it ended with " + run.end.text() +
             (run.end.signal == SIGKILL ? ", as when the host's memory runs out" : "");
  }
  return {};
}

const ProcessRecord* out_of_memory_in(const std::vector<ProcessRecord>& records) {
  for (const ProcessRecord& record : records)
    if (record.exception && record.exception->out_of_memory) return &record;
  return nullptr;
}

/// Memory ran out, and the program, though it caught that, did not end well.
bool ran_out_unheard(const std::vector<ProcessRecord>& records) {
  return std::ranges::any_of(records, [](const ProcessRecord& record) {
    return !record.exception && !record.phases.empty() && record.phases.back().ooms != 0;
  });
}

void decide_outcome(TraceReport& report, const std::vector<ProcessRecord>& records, const ProgramRun& run) {
  if (run.how == RunEnd::hung) {
    report.outcome = TraceOutcome::hung;
    report.message = end_text(run);
  } else if (run.how == RunEnd::ended && run.end.succeeded() && !report.ranks.empty()) {
    report.outcome = TraceOutcome::ran;
  } else if (const ProcessRecord* full = out_of_memory_in(records)) {
    report.outcome = TraceOutcome::out_of_memory;
    report.message = full->exception->message;
  } else if (run.how == RunEnd::ended && ran_out_unheard(records)) {
    report.outcome = TraceOutcome::out_of_memory;
    report.message = "the GPU's memory ran out; the program caught the error and " + run.end.text();
  } else {
    report.outcome = TraceOutcome::failed;
    report.message = end_text(run);
    if (run.how == RunEnd::ended && report.ranks.empty())
      report.message += ": " + why_nothing_was_recorded(records, run);
    for (const ProcessRecord& one : records)
      if (one.exception) report.message = one.exception->type + ": " + one.exception->message;
  }
}

void add_findings(TraceReport& report, const std::vector<ProcessRecord>& records) {
  for (const ProcessRecord& record : records)
    for (const std::string& problem : record.problems)
      report.diagnostics.push_back(diagnostic(Severity::warning, "probe", problem));
  for (const ProcessRecord& record : records)
    if (!record.phases.empty() && record.end.empty() && report.outcome == TraceOutcome::ran)
      report.diagnostics.push_back(diagnostic(Severity::warning, "cut-off",
                                              "a process ended without a word after " + record.phases.back().name));
  for (const auto& [name, calls] : report.unimplemented)
    report.diagnostics.push_back(diagnostic(Severity::warning, "unimplemented",
                                            name + " is not implemented by the null GPU, and was called " +
                                                std::to_string(calls) + " times: it answered 'not supported'",
                                            "a program that goes another way for want of it may need other memory"));
  if (report.outcome == TraceOutcome::ran && !report.fits)
    report.diagnostics.push_back(
        diagnostic(Severity::warning, "no-room-beside", "it ran, but what lies outside the allocator finds no room"));
  const bool retried = std::ranges::any_of(report.ranks, [](const TracedRank& rank) { return rank.retries != 0; });
  if (report.fits && retried)
    report.diagnostics.push_back(diagnostic(
        Severity::note, "cache-given-back",
        "runs only because PyTorch frees its cached segments and tries again when the device is full",
        "steps are slower while this happens; a smaller micro batch, shorter sequences or expandable_segments:True ask for less"));
  if (report.outcome == TraceOutcome::ran && std::ranges::none_of(report.ranks, &TracedRank::trained))
    report.diagnostics.push_back(
        diagnostic(Severity::warning, "no-training", "it ran no backward pass: what is shown is all before training"));
}

}  // namespace

std::vector<OutsideTerm> terms_outside(const ClusterSpec& cluster) {
  std::vector<OutsideTerm> terms = device_terms(cluster);
  if (cluster.world_size < 2) return terms;
  const CommunicatorMemory memory = communicator_memory({.torch = StackVersions{}.torch,
                                                         .ranks = cluster.world_size,
                                                         .ranks_per_node = cluster.gpus_per_node,
                                                         .link = link_of(cluster.gpu),
                                                         .compute_capability = cluster.gpu.compute_capability,
                                                         .all_reduce = true});
  terms.push_back({.name = "nccl", .bytes = memory.bytes, .source = memory.source});
  return terms;
}

TraceReport assemble(const TraceSetup& setup, const std::vector<ProcessRecord>& records, const ProgramRun& run) {
  TraceReport report;
  report.command = setup.command;
  report.cluster = setup.cluster;
  report.played_rank = setup.played_rank;
  for (const ProcessRecord& record : records) {
    for (TracedRank& traced : ranks_of_process(record, record.rank)) report.ranks.push_back(std::move(traced));
    add_answers(report.answers, record);
    add_library(report, record);
    if (report.versions.size() < record.versions.size()) report.versions = record.versions;
    if (!record.phases.empty()) report.cluster.world_size = std::max(report.cluster.world_size, record.world_size);
  }
  report.outside = terms_outside(report.cluster);
  for (TracedRank& traced : report.ranks) {
    settle(traced.report.peak, report.cluster, report.outside);
    settle(traced.report.training_peak, report.cluster, report.outside);
  }
  std::ranges::stable_sort(report.ranks, {}, [](const TracedRank& rank) {
    return std::tuple{rank.report.peak.headroom, rank.report.rank};
  });
  decide_outcome(report, records, run);
  const bool room = std::ranges::all_of(
      report.ranks, [](const TracedRank& rank) { return rank.report.peak.headroom >= ByteDelta{}; });
  report.fits = report.outcome == TraceOutcome::ran && room;
  add_findings(report, records);
  return report;
}

}  // namespace qlp

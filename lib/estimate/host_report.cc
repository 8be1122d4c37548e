#include "estimate/host_report.h"

#include <algorithm>

#include "estimate/outside_terms.h"
#include "plan/loading.h"

namespace qlp {
namespace {

/// Anonymous memory (RssAnon) of a process that has imported torch, transformers, peft, bitsandbytes and accelerate and
/// run one kernel: 403 MiB with torch 2.8.0 and transformers 4.57.1, 494 MiB with 2.14.1 and 5.24.0.
constexpr Bytes kProcess{std::uint64_t{494} << 20};

CategoryBytes categories_of(const HostFigures& figures) {
  CategoryBytes out;
  std::ranges::transform(figures.categories, out.begin(), [](std::uint64_t bytes) { return Bytes{bytes}; });
  return out;
}

HostRank rank_of(const std::vector<HostPhase>& phases) {
  HostRank rank;
  const HostPhase* highest = &phases.front();
  for (const HostPhase& phase : phases) {
    if (phase.peak.total() > highest->peak.total()) highest = &phase;
    rank.mapped = std::max(rank.mapped, Bytes{phase.peak.mapped});
  }
  rank.phase = highest->name;
  rank.peak = Bytes{highest->peak.total()}, rank.pinned = Bytes{highest->peak.pinned};
  rank.categories = categories_of(highest->peak);
  return rank;
}

std::int64_t processes_per_node(const JobSpec& job, const NamedPlan& plan) {
  return std::min(ranks_of(job, plan), job.cluster.gpus_per_node);
}

/// What the other process does in each phase of the first.
std::vector<HostPhase> completed(const std::vector<HostPhase>& other, const std::vector<HostPhase>& first) {
  std::vector<HostPhase> phases = other;
  for (std::size_t i = phases.size(); i < first.size(); ++i) phases.push_back(first[i]);
  return phases;
}

}  // namespace

bool host_differs_between_ranks(const JobSpec& job, const NamedPlan& plan) {
  const bool first_loads = loading_under(job, plan.plan) == Loading::rank0 && loads_ram_efficiently(plan.plan);
  return processes_per_node(job, plan) > 1 && (first_loads || job.training.saves_model || job.training.checkpoint);
}

HostReport host_report(const JobSpec& job, const NamedPlan& plan, const std::vector<HostPhase>& first,
                       const std::vector<HostPhase>* other) {
  HostReport report;
  report.processes = processes_per_node(job, plan);
  report.process = kProcess;
  report.rank0 = rank_of(first);
  report.page_cache = report.rank0.mapped;
  const std::vector<HostPhase> others = other ? completed(*other, first) : first;
  if (other) report.others = rank_of(others), report.page_cache = std::max(report.page_cache, report.others->mapped);
  const auto processes = static_cast<std::uint64_t>(report.processes);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Bytes sum =
        Bytes{first[i].peak.total()} + Bytes{others[i].peak.total()} * (processes - 1) + report.process * processes;
    if (sum > report.per_node) report.per_node = sum, report.per_node_phase = first[i].name;
  }
  return report;
}

}  // namespace qlp

#include "estimate/ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/refusal.h"
#include "base/rounding.h"
#include "base/text.h"
#include "estimate/outside_terms.h"
#include "plan/gpu_catalogue.h"
#include "plan/mistakes.h"

namespace qlp {
namespace {

/// What lies on the device beside the allocator's segments, and cannot leave it.
Bytes beside(const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside) {
  return sum(outside) + cluster.used_by_others;
}

/// How much of the memory that CUDA moves finds room on a device of which `taken` is taken.
Bytes resident(const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside, Bytes taken) {
  const Bytes kept = taken + margin_of(cluster);
  const Bytes capacity = cluster.gpu.capacity;
  return kept >= capacity ? Bytes{} : std::min(managed_sum(outside), Bytes{capacity}.remove(kept));
}

/// Whether the segments that a rank takes when nothing stops it leave the margin free.
bool fits_freely(const PeakReport& peak, const ClusterSpec& cluster) {
  return !peak.reserved_when_limited && peak.device_used + margin_of(cluster) <= peak.capacity;
}

bool fits_as_required(const PeakReport& peak, const ClusterSpec& cluster) {
  return peak.required_device && *peak.required_device + margin_of(cluster) <= peak.capacity;
}

/// What the processes of a node take against what a node has; none where either is unknown, or there is enough.
std::optional<Diagnostic> host_shortage(const PlanReport& plan, const ClusterSpec& cluster) {
  if (!plan.host || (cluster.host_memory && plan.host->per_node <= *cluster.host_memory)) return std::nullopt;
  const std::string needed = "the processes of a node hold " + format_size(plan.host->per_node) +
                             " of host memory in " + plan.host->per_node_phase;
  if (cluster.host_memory)
    return refusal("host-memory", needed + ", a node has " + format_size(*cluster.host_memory), "cluster.host_memory",
                   "load on the GPU or from rank 0, offload less, or pin less");
  // Machines with GPUs seldom have less host memory than their GPUs have together.
  const Bytes of_gpus = cluster.gpu.capacity * static_cast<std::uint64_t>(plan.host->processes);
  if (plan.host->per_node <= of_gpus) return std::nullopt;
  Diagnostic unknown = refusal("host-memory-unknown",
                               needed + ", more than the GPUs that it uses have; whether the host has it is not known",
                               "cluster.host_memory", "give cluster.host_memory");
  unknown.severity = Severity::warning;
  return unknown;
}

/// Steps of 1 %, the difference between times that is worth a choice.
std::int64_t rank_of(double seconds) {
  return seconds > 0 ? std::lround(std::log(seconds) * 100) : std::numeric_limits<std::int64_t>::min();
}

/// Smaller is better: leaves GPUs idle, gives its cache back, the lower bound of its steps, what they communicate
/// (which the bound takes to be hidden where it can be), negative headroom in steps of 1 % of the capacity.
using Preference = std::tuple<bool, bool, std::int64_t, std::int64_t, std::int64_t>;

Preference preference(const PlanReport& plan, const JobSpec& job) {
  const StepTime time = plan.step_time.value_or(StepTime{});
  const bool leaves_gpus_idle = ranks_of(job, plan.plan) < job.cluster.world_size;
  const PeakReport& peak = plan.ranks.front().peak;
  const auto percent = std::max<std::int64_t>(static_cast<std::int64_t>(peak.capacity.count() / 100), 1);
  return {leaves_gpus_idle, plan.cache_given_back, rank_of(time.lower_bound), rank_of(time.terms.communication),
          -peak.headroom.count() / percent};
}

Diagnostic note(std::string code, std::string message, std::string hint = {}) {
  return {.severity = Severity::note,
          .code = std::move(code),
          .message = std::move(message),
          .key_path = {},
          .position = {},
          .hint = std::move(hint)};
}

}  // namespace

Bytes margin_of(const ClusterSpec& cluster) {
  return Bytes{
      static_cast<std::uint64_t>(std::llround(cluster.margin * static_cast<double>(cluster.gpu.capacity.count())))};
}

Bytes allocator_limit(const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside) {
  const Bytes taken = margin_of(cluster) + beside(cluster, outside);
  const Bytes capacity = cluster.gpu.capacity;
  return taken >= capacity ? Bytes{} : Bytes{capacity}.remove(taken);
}

void settle(PeakReport& peak, const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside) {
  peak.capacity = cluster.gpu.capacity;
  peak.device_used = peak.reserved_here() + beside(cluster, outside);
  peak.device_used += resident(cluster, outside, peak.device_used);
  if (peak.required_reserved) peak.required_device = *peak.required_reserved + beside(cluster, outside);
  peak.headroom = difference(peak.capacity, margin_of(cluster) + peak.required_device.value_or(peak.device_used));
}

bool needs_replay(const PeakReport& peak, const ClusterSpec& cluster, const std::vector<OutsideTerm>& outside) {
  const Bytes limit = allocator_limit(cluster, outside);
  return peak.reserved_at_worst() > limit && peak.figures.allocated <= limit;
}

void judge(PlanReport& plan, const ClusterSpec& cluster, std::optional<bool> runs_when_limited) {
  for (auto& rank : plan.ranks) {
    settle(rank.peak, cluster, plan.outside);
    settle(rank.training_peak, cluster, plan.outside);
  }
  std::ranges::stable_sort(plan.ranks, {}, [](const RankReport& r) { return r.peak.headroom; });
  const auto all_ranks = [&](auto fits) {
    return !plan.ranks.empty() &&
           std::ranges::all_of(plan.ranks, [&](const RankReport& r) { return fits(r.peak, cluster); });
  };
  const bool freely = all_ranks(fits_freely);
  const bool tightly = runs_when_limited.value_or(all_ranks(fits_as_required));
  plan.fits = plan.applicable() && (freely || tightly);
  if (auto shortage = host_shortage(plan, cluster)) {
    if (shortage->severity == Severity::error) plan.fits = false;
    plan.diagnostics.push_back(*std::move(shortage));
  }
  plan.cache_given_back = plan.fits && !freely;
  if (plan.cache_given_back)
    plan.diagnostics.push_back(note(
        "cache-given-back",
        "fits only because PyTorch frees its cached segments and tries again when the device is full; without a "
        "limit it would reserve " +
            format_size(plan.ranks.front().peak.reserved_at_worst()),
        "steps are slower while this happens; a smaller micro batch, shorter sequences or expandable_segments:True ask for less"));
}

std::vector<const PlanReport*> best_first(const Report& report) {
  std::vector<const PlanReport*> plans;
  for (const auto& plan : report.plans) plans.push_back(&plan);
  const auto key = [&](const PlanReport* plan) {
    const bool ran = plan->applicable() && !plan->ranks.empty();
    const int group = !ran ? 3 : find_mistake(plan->plan.name) ? 2 : plan->fits ? 0 : 1;
    const auto headroom = ran && group != 0 ? plan->ranks.front().peak.headroom.count() : 0;
    return std::tuple{group, group == 0 ? preference(*plan, report.job) : Preference{}, -headroom};
  };
  std::ranges::stable_sort(plans, {}, key);
  return plans;
}

bool any_fits(const Report& report) {
  return std::ranges::any_of(report.plans,
                             [](const PlanReport& plan) { return plan.fits && !find_mistake(plan.plan.name); });
}

Resources resources_of(const PlanReport& plan, const JobSpec& job) {
  const ClusterSpec& cluster = job.cluster;
  const PeakReport& peak = plan.ranks.front().peak;
  Resources need;
  need.gpus = ranks_of(job, plan.plan);
  need.gpus_per_node = std::min(need.gpus, cluster.gpus_per_node);
  if (plan.host) need.host_memory_per_node = plan.host->per_node;
  need.nodes = ceil_div(need.gpus, need.gpus_per_node);
  // Where a plan runs by giving its cache back, less may do; without a search, what it was tried with.
  need.gpu_memory = plan.cache_given_back
                        ? (peak.required_device ? *peak.required_device + margin_of(cluster) : peak.capacity)
                        : peak.device_used + margin_of(cluster);
  if (const GpuRow* row = find_gpu_row(cluster.gpu.name); row != nullptr && row->nvml_total_mib != 0) {
    const Bytes nominal{std::uint64_t{row->nvml_total_mib} << 20};
    const Bytes given = spec_of(*row).capacity;
    const Bytes on_smi_scale = need.gpu_memory + Bytes{nominal.count() - std::min(nominal, given).count()};
    need.gpu_memory_mib = round_up(on_smi_scale, 1U << 20).count() >> 20;
  }
  return need;
}

void recommend(Report& report) {
  if (report.plans.empty()) return;
  const PlanReport* best = best_first(report).front();
  if (!best->fits || find_mistake(best->plan.name)) return;
  report.recommended = best->plan.name;
  report.resources = resources_of(*best, report.job);
  if (report.resources->gpus < report.job.cluster.world_size)
    report.diagnostics.push_back(note("gpus-left-idle", "only plan " + best->plan.name +
                                                            " fits, which leaves idle some of the " +
                                                            std::to_string(report.job.cluster.world_size) + " GPUs"));
}

}  // namespace qlp

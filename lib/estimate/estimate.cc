#include "estimate/estimate.h"

#include <stdexcept>
#include <utility>

#include "autograd/checkpoint.h"
#include "base/refusal.h"
#include "base/text.h"
#include "estimate/adapter_names.h"
#include "estimate/attention_rules.h"
#include "estimate/closed_form.h"
#include "estimate/communication.h"
#include "estimate/dry_run.h"
#include "estimate/eight_bit_rules.h"
#include "estimate/expert_rules.h"
#include "estimate/host_report.h"
#include "estimate/ledger.h"
#include "estimate/moot_mistakes.h"
#include "estimate/optimizer_rules.h"
#include "estimate/outside_terms.h"
#include "estimate/parallel_rules.h"
#include "estimate/rank_report.h"
#include "estimate/step_time.h"
#include "estimate/step_work.h"
#include "estimate/zero_rules.h"
#include "memory/replay.h"

namespace qlp {
namespace {

HostReport host_memory(const JobSpec& job, const NamedPlan& plan, const DryRun& first) {
  if (!host_differs_between_ranks(job, plan)) return host_report(job, plan, first.host, nullptr);
  // Only what is written at the end tells ranks apart once all have their weights.
  const bool saves = job.training.saves_model || job.training.checkpoint;
  const auto extent = saves ? RunExtent::whole : RunExtent::preparation;
  const auto other = dry_run(job, plan.plan, 1, extent);
  return host_report(job, plan, first.host, other ? &other->host : nullptr);
}

/// One rank: its ledger, and whether it runs with what is left to the allocator, where only a replay can tell.
struct PlayedRank {
  RankReport report;
  std::optional<bool> runs_when_limited;
  std::optional<Diagnostic> death;  ///< where it does not
};

/// Tensors alone would find room; what is free lies in parts, in segments that are in use or those of other streams.
Diagnostic death_of(const Timeline& timeline, const ReplayOutcome& limited, Bytes limit) {
  const Bytes asked{timeline.requested_of(timeline.event(*limited.died_at).index)};
  return {.severity = Severity::note,
          .code = "dies-in",
          .message = "runs out of memory in " + timeline.phases()[limited.phases.size() - 1].name + ", where " +
                     format_size(asked) + " are asked for beside " +
                     format_size(Bytes{limited.stats.allocated.current}) + " in use: of the " + format_size(limit) +
                     " that the allocator may take, " + format_size(Bytes{limited.stats.reserved.current}) +
                     " are taken, and what is free in them is in parts or another stream's",
          .key_path = {},
          .position = {},
          .hint = {}};
}

PlayedRank play_rank(const JobSpec& job, const DryRun& run, std::int64_t rank, const std::vector<OutsideTerm>& outside,
                     const EstimateOptions& options) {
  PlayedRank played{.report = rank_report(run, rank, options.phase_inventories)};
  RankReport& report = played.report;
  // Blocks that wait for a stream make the peaks depend on how far the GPU lags; the verdict is from the worse side.
  const auto lag = run.timeline.waits_for_streams() ? EventPolicy::at_synchronize : EventPolicy::ready_at_once;
  if (lag == EventPolicy::at_synchronize)
    add_slowest(report, run.timeline, replay(run.timeline, job.allocator, CounterSource::kUnlimited, lag));
  if (options.required) {
    const Bytes least{least_memory(run.timeline, job.allocator, lag)};
    report.peak.required_reserved = report.training_peak.required_reserved = least;
  }
  if (needs_replay(report.peak, job.cluster, outside)) {
    const Bytes limit = allocator_limit(job.cluster, outside);
    const ReplayOutcome limited = replay(run.timeline, job.allocator, limit.count(), lag);
    played.runs_when_limited = limited.runs();
    if (limited.runs())
      set_limited(report, run.timeline, limited);
    else
      played.death = death_of(run.timeline, limited, limit);
  }
  return played;
}

PlanReport play(const JobSpec& job, const NamedPlan& plan, const EstimateOptions& options) {
  PlanReport report;
  report.plan = plan;
  report.diagnostics = zero_warnings(job, plan.plan);
  for (Diagnostic& warning : optimizer_warnings(job, plan.plan)) report.diagnostics.push_back(std::move(warning));
  report.outside = outside_terms(job, plan);
  std::optional<bool> runs_when_limited;
  const auto ranks = options.rank == 0 ? distinct_ranks(job, plan.plan) : std::vector{options.rank};
  for (const std::int64_t rank : ranks) {
    const auto run = dry_run(job, plan.plan, rank, RunExtent::whole);
    if (!run) {
      report.outside.clear();
      report.refusals = run.error();
      return report;
    }
    if (rank == 0) report.host = host_memory(job, plan, *run);
    if (rank == ranks.front() && run->managed_state > Bytes{})
      report.outside.push_back(paged_optimizer_state(run->managed_state));
    const std::vector<StepPhase> step = last_step(*run, job.training);
    const std::optional<StepTime> time = step_time(step, job.cluster, job.training.tf32);
    const bool slower = time && (!report.step_time || time->lower_bound > report.step_time->lower_bound);
    if (rank == ranks.front() || slower) {  // the others wait for the slowest
      report.step_time = time;
      report.communication = communication_of(step);
    }
    PlayedRank played = play_rank(job, *run, rank, report.outside, options);
    report.ranks.push_back(std::move(played.report));
    if (played.death && runs_when_limited.value_or(true)) report.diagnostics.push_back(*std::move(played.death));
    if (played.runs_when_limited) runs_when_limited = runs_when_limited.value_or(true) && *played.runs_when_limited;
  }
  judge(report, job.cluster, runs_when_limited);
  return report;
}

}  // namespace

/// A job that takes more than can be counted is one that does not run.
PlanReport estimate_plan(const JobSpec& job, const NamedPlan& plan, const EstimateOptions& options) {
  const auto too_large = [&] {
    PlanReport report;
    report.plan = plan;
    report.refusals = {{.code = "too-large", .message = "it takes more memory than can be counted"}};
    return report;
  };
  try {
    return play(job, plan, options);
  } catch (const RecomputationDiffers& error) {
    PlanReport report;
    report.plan = plan;
    report.refusals.push_back(refusal("recomputation-differs", error.what() + std::string(", which torch stops at"),
                                      "training.gradient_checkpointing",
                                      "set use_reentrant to true, or keep outputs in the dtype of parameters"));
    return report;
  } catch (const OutOfMemory&) {
    return too_large();
  } catch (const std::overflow_error&) {
    return too_large();
  }
}

Report estimate(const JobSpec& job, const EstimateOptions& options) {
  Report report;
  report.job = job;
  report.parameters = count_parameters(job);
  report.diagnostics = attention_warnings(job, StackProfile(job.stack));
  for (Diagnostic& warning : adapter_warnings(job)) report.diagnostics.push_back(std::move(warning));
  for (Diagnostic& warning : expert_warnings(job)) report.diagnostics.push_back(std::move(warning));
  for (Diagnostic& note : eight_bit_notes(job)) report.diagnostics.push_back(std::move(note));
  for (Diagnostic& note : mesh_notes(job)) report.diagnostics.push_back(std::move(note));
  std::vector<const NamedPlan*> plans;
  for (const NamedPlan& plan : job.plans)
    if (!options.only_plan || plan.name == *options.only_plan) plans.push_back(&plan);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (options.on_progress) options.on_progress(plans[i]->name, i, plans.size());
    report.plans.push_back(estimate_plan(job, *plans[i], options));
  }
  leave_out_moot_mistakes(report);
  recommend(report);
  return report;
}

}  // namespace qlp

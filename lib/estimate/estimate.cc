#include "estimate/estimate.h"

#include <stdexcept>
#include <utility>

#include "estimate/attention_rules.h"
#include "estimate/closed_form.h"
#include "estimate/communication.h"
#include "estimate/dry_run.h"
#include "estimate/expert_rules.h"
#include "estimate/host_report.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "estimate/rank_report.h"
#include "estimate/step_time.h"
#include "estimate/step_work.h"
#include "memory/replay.h"

namespace qlp {
namespace {

HostReport host_memory(const JobSpec& job, const NamedPlan& plan, const DryRun& first) {
  if (!host_differs_between_ranks(job, plan)) return host_report(job, plan, first.host, nullptr);
  // Only what is written at the end tells ranks apart once all have their weights.
  const auto extent = job.training.saves_model ? RunExtent::whole : RunExtent::preparation;
  const auto other = dry_run(job, plan.plan, 1, extent);
  return host_report(job, plan, first.host, other ? &other->host : nullptr);
}

PlanReport play(const JobSpec& job, const NamedPlan& plan, const EstimateOptions& options) {
  PlanReport report;
  report.plan = plan;
  auto run = dry_run(job, plan.plan, options.rank, RunExtent::whole);
  if (!run) {
    report.refusals = run.error();
    return report;
  }
  report.outside = outside_terms(job, plan);
  if (run->managed_state > Bytes{}) report.outside.push_back(paged_optimizer_state(run->managed_state));
  if (options.rank == 0) report.host = host_memory(job, plan, *run);
  const std::vector<StepPhase> step = last_step(*run, job.training);
  report.communication = communication_of(step);
  report.step_time = step_time(step, job.cluster);
  RankReport rank = rank_report(*run, options.rank, options.phase_inventories);
  // Blocks that wait for a stream make the peaks depend on how far the GPU lags; the verdict is from the worse side.
  const auto lag = run->timeline.waits_for_streams() ? EventPolicy::at_synchronize : EventPolicy::ready_at_once;
  if (lag == EventPolicy::at_synchronize)
    add_slowest(rank, run->timeline, replay(run->timeline, job.allocator, CounterSource::kUnlimited, lag));
  if (options.required) {
    const Bytes least{least_memory(run->timeline, job.allocator, lag)};
    rank.peak.required_reserved = rank.training_peak.required_reserved = least;
  }
  std::optional<bool> runs_when_limited;
  if (needs_replay(rank.peak, job.cluster, report.outside)) {
    const Bytes limit = allocator_limit(job.cluster, report.outside);
    runs_when_limited = replay(run->timeline, job.allocator, limit.count(), lag).runs();
  }
  report.ranks.push_back(std::move(rank));
  judge(report, job.cluster, runs_when_limited);
  return report;
}

/// A job that takes more than can be counted is one that does not run.
PlanReport run_plan(const JobSpec& job, const NamedPlan& plan, const EstimateOptions& options) {
  const auto too_large = [&] {
    PlanReport report;
    report.plan = plan;
    report.refusals = {{.code = "too-large", .message = "it takes more memory than can be counted"}};
    return report;
  };
  try {
    return play(job, plan, options);
  } catch (const OutOfMemory&) {
    return too_large();
  } catch (const std::overflow_error&) {
    return too_large();
  }
}

}  // namespace

Report estimate(const JobSpec& job, const EstimateOptions& options) {
  Report report;
  report.job = job;
  report.parameters = count_parameters(job);
  report.diagnostics = attention_warnings(job, StackProfile(job.stack));
  for (Diagnostic& warning : expert_warnings(job)) report.diagnostics.push_back(std::move(warning));
  std::vector<const NamedPlan*> plans;
  for (const NamedPlan& plan : job.plans)
    if (!options.only_plan || plan.name == *options.only_plan) plans.push_back(&plan);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (options.on_progress) options.on_progress(plans[i]->name, i, plans.size());
    report.plans.push_back(run_plan(job, *plans[i], options));
  }
  recommend(report);
  return report;
}

}  // namespace qlp

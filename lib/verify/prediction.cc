#include "verify/prediction.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "estimate/estimate.h"
#include "estimate/outside_terms.h"

namespace qlp {
namespace {

RankVerification verification_of_rank(const RankRecord& record, const RankPrediction& prediction,
                                      const VerifyRequest& request) {
  RankVerification out{.rank = record.rank, .end = record.end, .state = record.state.what, .message = record.message};
  if (record.end != RankEnd::finished) {
    out.output = record.output;
    return out;
  }
  const RankMeasurement& measured = *record.measurement;
  out.device = measured.device.name;
  out.figures = compare(measured, prediction, {.alone = request.alone.has_value()});
  if (request.device == VerifyDevice::null) return out;  // which computes nothing: its numbers are none
  out.losses = measured.losses;
  out.gradient_norms = measured.gradient_norms;
  out.skipped_steps = measured.skipped_steps;
  return out;
}

}  // namespace

std::vector<std::int64_t> ranks_of(const VerifyRequest& request) {
  if (request.alone) return {*request.alone};
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(ranks_of(request.job, request.plan)));
  std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
  return ranks;
}

std::vector<RankPrediction> predict(const VerifyRequest& request, const std::vector<std::int64_t>& ranks,
                                    const Report& known) {
  const JobSpec& job = request.job;
  std::vector<RankPrediction> out;
  for (const std::int64_t rank : ranks) {
    const auto is_known = std::ranges::find(known.plans.front().ranks, rank, &RankReport::rank);
    const PlanReport plan = is_known == known.plans.front().ranks.end()
                                ? estimate_plan(job, request.plan, {.rank = rank})
                                : known.plans.front();
    const auto played = std::ranges::find(plan.ranks, rank, &RankReport::rank);
    if (played == plan.ranks.end()) throw std::logic_error("no rank " + std::to_string(rank) + ": " + plan.reason());
    out.push_back({.report = *played, .outside = plan.outside, .used_by_others = job.cluster.used_by_others});
  }
  return out;
}

Verification verification_of(const VerifyRequest& request, const SupervisedRun& run,
                             const std::vector<RankPrediction>& predictions) {
  Verification out{.plan = request.plan.name,
                   .device = request.device,
                   .world_size = ranks_of(request.job, request.plan),
                   .alone = request.alone.has_value(),
                   .steps = request.job.training.num_steps,
                   .tolerance = request.tolerance,
                   .interrupted = run.interrupted};
  for (std::size_t i = 0; i < run.ranks.size(); ++i) {
    const RankRecord& record = run.ranks[i];
    out.ranks.push_back(verification_of_rank(record, predictions.at(i), request));
    if (out.versions.empty() && record.measurement) out.versions = record.measurement->device.versions;
  }
  return out;
}

}  // namespace qlp

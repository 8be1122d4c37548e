#include "estimate/cpu_run.h"

#include <cmath>

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"

namespace qlp {
namespace {

JobSpec computed_job(const ModelSpec& model) {
  JobSpec job = small_lora_job(model);
  job.training.num_steps = 6;
  return job;
}

void check_same_peaks(const JobSpec& job, const ShardingPlan& plan, const DryRun& run, std::int64_t rank) {
  const auto dry = dry_run(job, plan, rank);
  REQUIRE(dry);
  CHECK(run.timeline.event_count() == dry->timeline.event_count());
  REQUIRE(run.timeline.phases().size() == dry->timeline.phases().size());
  for (std::size_t i = 0; i < run.timeline.phases().size(); ++i) {
    const auto &mine = run.timeline.phases()[i], &other = dry->timeline.phases()[i];
    CAPTURE(mine.name);
    CHECK(mine.allocated.bytes == other.allocated.bytes);
    CHECK(mine.reserved.bytes == other.reserved.bytes);
  }
}

}  // namespace

TEST_CASE("estimate/cpu_run: every dense family learns, with the memory that a dry run says") {
  for (const Family family : kAllFamilies) {
    const JobSpec job = computed_job(small_model(family));
    const auto runs = run_on_cpu(job, Single{}, {.learning_rate = 3e-2});
    REQUIRE(runs);
    const auto& steps = runs->front().steps;
    REQUIRE(steps.size() == 6);
    for (const StepNumbers& step : steps) {
      CHECK(std::isfinite(step.loss));
      CHECK(step.grad_norm > 0);
    }
    CHECK(steps.back().loss < steps.front().loss);
    check_same_peaks(job, Single{}, runs->front(), 0);
  }
}

}  // namespace qlp

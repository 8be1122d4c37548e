#include "estimate/estimate.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/ledger.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

using namespace qlp;

TEST_CASE("estimate/estimate: where tensors would find room and the job dies, it is said in which phase") {
  JobSpec job = small_lora_job(llama_1b(2));
  job.cluster.world_size = 2;
  job.cluster.margin = 0;
  job.plans = {*find_plan("fsdp2")};
  const auto told = [](const PlanReport& plan) {
    return std::ranges::find(plan.diagnostics, "dies-in", &Diagnostic::code);
  };
  const PlanReport at_ease = estimate(job).plans.front();
  REQUIRE(at_ease.fits);
  CHECK(told(at_ease) == at_ease.diagnostics.end());

  const PeakReport& peak = at_ease.ranks.front().peak;
  const Bytes beside = Bytes{peak.device_used}.remove(peak.reserved_here());
  job.cluster.gpu.capacity = beside + peak.figures.allocated;
  const PlanReport cramped = estimate(job).plans.front();
  CHECK_FALSE(cramped.fits);
  REQUIRE(told(cramped) != cramped.diagnostics.end());
  CHECK(told(cramped)->message.find("out of memory in ") != std::string::npos);
}

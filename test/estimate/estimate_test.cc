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

TEST_CASE("estimate/estimate: a checkpointed region that runs otherwise the second time is refused, as torch does") {
  // FSDP2 casts what goes in and out of a layer, but not when it runs again in the backward pass; in transformers 4.57
  // the layer's hooks are inside of the region.
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  job.stack.torch = {2, 8, 0}, job.stack.transformers = {4, 57, 1}, job.stack.peft = {0, 18, 0};
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  job.plans = {*find_plan("fsdp2")};
  CHECK(estimate(job).plans.front().applicable());
  std::get<Fsdp2>(job.plans.front().plan).mp_policy.output_dtype = PolicyDType::float32;
  const PlanReport refused = estimate(job).plans.front();
  REQUIRE_FALSE(refused.applicable());
  CHECK(refused.refusals.front().code == "recomputation-differs");
}

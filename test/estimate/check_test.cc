#include "estimate/check.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

std::vector<JobSpec> sample_jobs() {
  std::vector<JobSpec> jobs{small_job(small_model(Family::llama)), small_lora_job(small_model(Family::qwen2)),
                            small_qlora_job(small_model(Family::llama)),
                            small_qlora_job(small_model(Family::gemma2), DType::uint8)};
  for (JobSpec& job : jobs) job.cluster.world_size = 4;
  return jobs;
}

}  // namespace

TEST_CASE("estimate/check: every finding is known, names its plan and has evidence or a reason") {
  for (const JobSpec& job : sample_jobs())
    for (const auto name : kPlanNames) {
      const Report report = check(job, *find_plan(name));
      REQUIRE(report.findings);
      const PlanReport& plan = report.plans.front();
      CHECK((plan.applicable() || !report.findings->empty()));
      for (const Finding& finding : *report.findings) {
        CAPTURE(finding.code);
        CHECK(finding.plan == name);
        CHECK_FALSE(finding.message.empty());
        CHECK((finding.evidence.has_value() == plan.applicable()));
        if (plan.applicable()) CHECK(std::ranges::find(kRuleCodes, finding.code) != kRuleCodes.end());
      }
      CHECK(std::ranges::is_sorted(*report.findings, std::ranges::greater{}, &Finding::severity));
    }
}

TEST_CASE("estimate/check: the saving of a fix is what the estimates of both jobs say") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.training.seq_len = 4096;
  const NamedPlan plan = *find_plan("single");
  const Report report = check(job, plan);
  const auto found = std::ranges::find(*report.findings, "no-gradient-checkpointing", &Finding::code);
  REQUIRE(found != report.findings->end());
  REQUIRE(found->fix);
  JobSpec mended = job;
  mended.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  mended.plans = {plan};
  const PeakReport before = report.plans.front().ranks.front().peak;
  const PeakReport after = estimate(mended).plans.front().ranks.front().peak;
  CHECK(found->fix->peak_allocated == after.figures.allocated);
  CHECK(*found->fix->saving == difference(before.figures.allocated, after.figures.allocated));
}

TEST_CASE("estimate/check: nothing is said of a job with nothing wrong") {
  JobSpec job = small_qlora_job(small_model(Family::llama));
  job.training.seq_len = 1;
  CHECK(check(job, *find_plan("single")).findings->empty());
}

TEST_CASE("estimate/check: over budget exactly where the plan does not fit") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  for (const std::uint64_t mib : {1U, 300U, 700U, 2000U}) {
    job.cluster.gpu.capacity = Bytes{mib << 20U};
    const Report report = check(job, *find_plan("single"));
    const bool found = std::ranges::any_of(*report.findings, [](const Finding& f) { return f.code == "over-budget"; });
    CHECK(found == !report.plans.front().fits);
  }
}

TEST_CASE("estimate/check: a name that the model has not is a finding of every plan, run or not") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  job.adapter->target_modules = {"q_proj", "query_key_value"};
  for (const auto name : {"ddp", "fsdp2"}) {
    const Report report = check(job, *find_plan(name));
    const auto found = std::ranges::find(*report.findings, "adapter-name-unmatched", &Finding::code);
    REQUIRE(found != report.findings->end());
    CHECK(found->severity == Severity::warning);
    CHECK(found->message.find("query_key_value") != std::string::npos);
    CHECK(found->key_path == "adapter.target_modules");
  }
}

}  // namespace qlp

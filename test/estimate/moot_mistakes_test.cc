#include "estimate/moot_mistakes.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

Report with_mistakes(JobSpec job) {
  job.cluster.world_size = 4;
  job.plans.clear();
  for (const auto name :
       {"fsdp2", "fsdp1-full-shard", "mistake:float32", "mistake:mixed-units", "mistake:no-wrap-policy"})
    job.plans.push_back(*find_plan(name));
  return estimate(job, {});
}

bool lists(const Report& report, std::string_view plan) {
  return std::ranges::any_of(report.plans, [&](const PlanReport& p) { return p.plan.name == plan; });
}

}  // namespace

TEST_CASE(
    "estimate/moot_mistakes: where all is trained, neither float32 nor mixed units are mistakes; units still are") {
  const Report report = with_mistakes(small_job(small_model(Family::llama)));
  CHECK_FALSE(lists(report, "mistake:float32"));
  CHECK_FALSE(lists(report, "mistake:mixed-units"));
  CHECK(lists(report, "mistake:no-wrap-policy"));
  CHECK(std::ranges::count(report.diagnostics, "mistake-changes-nothing", &Diagnostic::code) == 2);
}

TEST_CASE("estimate/moot_mistakes: with an adapter they cost something") {
  const Report report = with_mistakes(small_lora_job(small_model(Family::llama)));
  CHECK(lists(report, "mistake:float32"));
  CHECK(std::ranges::count(report.diagnostics, "mistake-changes-nothing", &Diagnostic::code) == 0);
}

}  // namespace qlp

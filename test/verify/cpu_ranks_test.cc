#include "verify/cpu_ranks.h"

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "estimate/estimate.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

VerifyRequest request(const std::string& plan) {
  auto document = read_job_file("configs/tiny-qlora.yaml");
  REQUIRE(document);
  document->job.plans = {*find_plan(plan)};
  return {.job = document->job, .plan = *find_plan(plan)};
}

TEST_CASE("verify/cpu_ranks: a run is as predicted to the byte, and tells its phases") {
  const VerifyRequest single = request("single");
  std::vector<std::string> phases;
  const auto run = run_cpu_ranks(single, [&](const RankRecord& record) { phases.push_back(record.state.what); });
  REQUIRE(run.ranks.size() == 1);
  CHECK(run.ranks[0].end == RankEnd::finished);
  const auto predictions = predict(single, ranks_of(single), estimate(single.job));
  const Verification verification = verification_of(single, run, predictions);
  CHECK(verification.within_tolerance());
  CHECK(verification.world_size == 1);
  CHECK(verification.ranks[0].losses.size() == 2);
  REQUIRE(phases.size() == predictions[0].report.phases.size());
  CHECK(phases.front() == "load");
  CHECK(phases[3] == predictions[0].report.phases[3].name);
}

TEST_CASE("verify/cpu_ranks: a device that is too small is out of memory, in the phase where it is") {
  VerifyRequest small = request("single");
  small.job.cluster.gpu.capacity = Bytes{632U << 20U};
  const auto run = run_cpu_ranks(small, [](const RankRecord&) {});
  CHECK(run.ranks[0].end == RankEnd::out_of_memory);
  CHECK(run.ranks[0].message.find("out of memory: tried to allocate") == 0);
  CHECK(run.ranks[0].state.what.find("micro1.") == 0);
  CHECK_FALSE(run.ranks[0].measurement);
}

TEST_CASE("verify/cpu_ranks: what cannot be computed yet is refused with the reason") {
  VerifyRequest untrained = request("single");
  untrained.job.training.optimizer = named_optimizer("schedule_free_radam");
  const auto run = run_cpu_ranks(untrained, [](const RankRecord&) {});
  CHECK(run.ranks[0].end == RankEnd::refused);
  CHECK(run.ranks[0].message.find("schedule_free_radam") != std::string::npos);
}

}  // namespace
}  // namespace qlp

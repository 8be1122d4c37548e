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

TEST_CASE("verify/cpu_ranks: what nobody would train on is refused with the reason") {
  VerifyRequest unsent = request("fsdp2");
  unsent.job.cluster.world_size = 2;
  unsent.job.stack.transformers = {4, 57, 1};
  unsent.job.loading = Loading::automatic, unsent.job.quantization->quant_storage = DType::bfloat16;
  const auto run = run_cpu_ranks(unsent, [](const RankRecord&) {});
  CHECK(run.ranks[0].end == RankEnd::refused);
  CHECK(run.ranks[0].message.find("accelerate sends none") != std::string::npos);
}

TEST_CASE("verify/cpu_ranks: a run that the library would end is no run, and says why") {
  VerifyRequest unscaled = request("zero2");
  unscaled.job.cluster.world_size = 2;
  unscaled.job.training.bf16 = false, unscaled.job.training.fp16 = true;
  std::get<Zero>(unscaled.plan.plan).fp16 = {.initial_scale_power = 100, .hysteresis = 1, .min_loss_scale = 1e30};
  const auto run = run_cpu_ranks(unscaled, [](const RankRecord&) {});
  CHECK(run.ranks[0].end == RankEnd::refused);
  CHECK(run.ranks[0].message.find("Current loss scale already at minimum") == 0);
}

}  // namespace
}  // namespace qlp

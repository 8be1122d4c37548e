#include "estimate/can_compute.h"

#include <algorithm>
#include <string_view>

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp::test {
namespace {

bool tells(const JobSpec& job, std::string_view plan, std::string_view words) {
  const Diagnostics found = check_can_compute(job, find_plan(plan)->plan);
  return std::ranges::any_of(found, [&](const Diagnostic& d) { return d.message.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("estimate/can_compute: weights that the first rank alone has read are told where others need them") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  job.loading = Loading::automatic;
  CHECK(check_can_compute(job, find_plan("fsdp2")->plan).empty());
  job.loading = Loading::cpu;
  job.cluster.mesh.pp = 2;
  CHECK(check_can_compute(job, find_plan("fsdp2")->plan).empty());
  job.loading = Loading::automatic;
  CHECK(tells(job, "fsdp2", "stages of which it is none"));
  CHECK_FALSE(tells(job, "ddp", "stages"));
}

}  // namespace qlp::test

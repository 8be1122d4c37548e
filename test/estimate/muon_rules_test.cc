#include "estimate/muon_rules.h"

#include <string>

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

using namespace qlp;

namespace {

std::string refused(const JobSpec& job, const char* plan) {
  const auto refusals = check_muon(job, find_plan(plan)->plan, StackProfile(job.stack), "training.optimizer");
  return refusals.empty() ? "" : refusals.front().code;
}

}  // namespace

TEST_CASE("estimate/muon_rules: flat parts and vectors are nothing for it") {
  JobSpec lora = small_lora_job(small_model(Family::llama));
  CHECK(refused(lora, "single").empty());
  CHECK(refused(lora, "ddp").empty());
  CHECK(refused(lora, "fsdp1-full-shard") == "muon-on-flat-parameters");
  CHECK(refused(lora, "zero2") == "muon-on-flat-parameters");
  lora.adapter->r = 4;
  CHECK(refused(lora, "fsdp2").empty());
  JobSpec many = lora;
  many.cluster.world_size = 8;
  CHECK(refused(many, "fsdp2") == "muon-few-rows");
  lora.stack.torch = Version{2, 13, 0};
  CHECK(refused(lora, "fsdp2") == "muon-on-dtensor");
  CHECK(refused(small_job(small_model(Family::llama)), "single") == "muon-on-vectors");
  lora.adapter->use_dora = true;
  CHECK(refused(lora, "single") == "muon-on-vectors");
  lora.adapter->use_dora = false;
  lora.stack.torch = Version{2, 8, 0};
  CHECK(refused(lora, "single") == "optimizer-not-in-stack");
}

// As torch 2.14.1 cuts them: [64, 8192] and [128256, 2048] are multiplied as planned on 8 and 64 ranks, [1024, 4096] is
// not.
TEST_CASE("estimate/muon_rules: large matrices are cut otherwise under FSDP2") {
  JobSpec job = small_lora_job(llama_1b(2));
  job.cluster.world_size = 8;
  for (const std::int64_t rank : {8, 64}) {
    job.adapter->r = rank;
    CHECK(refused(job, "fsdp2") == "");
  }
  job.adapter->r = 1024;
  CHECK(refused(job, "fsdp2") == "muon-large-matrix");
  CHECK(refused(job, "ddp") == "");
  job.cluster.world_size = 2;
  CHECK(refused(job, "fsdp2") == "");  // two parts exchanged are one that is gathered
}

#include "plan/catalogue.h"

#include <doctest/doctest.h>

#include "plan/loading.h"

using namespace qlp;

TEST_CASE("plan/catalogue: every name of the list is a plan under that name") {
  for (auto name : kPlanNames) {
    const auto plan = find_plan(name);
    REQUIRE(plan);
    CHECK(plan->name == name);
  }
  CHECK_FALSE(find_plan("fsdp"));
}

TEST_CASE("plan/catalogue: names say what the options are") {
  CHECK(std::get<Fsdp1>(find_plan("fsdp1-no-shard")->plan).sharding_strategy == ShardingStrategy::no_shard);
  CHECK(std::get<Fsdp2>(find_plan("fsdp2")->plan) == Fsdp2{});
  CHECK(std::get<Fsdp2>(find_plan("fsdp2-no-reshard")->plan).reshard_after_forward == ReshardAfterForward{false});
  CHECK(std::get<Fsdp2>(find_plan("fsdp2-local-base")->plan).ignored_params == Fsdp2Ignored::quantized);
}

TEST_CASE("plan/catalogue: loading left open follows the plan") {
  CHECK(loading_under(Loading::automatic, Single{}) == Loading::gpu);
  CHECK(loading_under(Loading::automatic, Ddp{}) == Loading::gpu);
  CHECK(loading_under(Loading::automatic, Fsdp1{}) == Loading::rank0);
  CHECK(loading_under(Loading::automatic, Fsdp2{}) == Loading::rank0);
  CHECK(loading_under(Loading::gpu, Fsdp2{}) == Loading::gpu);
}

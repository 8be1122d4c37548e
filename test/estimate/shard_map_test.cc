#include "estimate/shard_map.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

ShardMap map_of(const JobSpec& job, std::string_view plan) {
  const auto map = shard_map(job, *find_plan(plan));
  if (!map)
    for (const auto& refusal : map.error()) MESSAGE(refusal.message);
  REQUIRE(map);
  return *map;
}

template <class Says>
bool all_of(const ShardMap& map, Says&& says) {
  return std::ranges::all_of(map.parameters, says);
}

JobSpec on_four(JobSpec job) {
  job.cluster.world_size = 4;
  return job;
}

}  // namespace

TEST_CASE("estimate/shard_map: floats are sharded and 4-bit weights ignored under fsdp2-local-base") {
  const ShardMap map = map_of(on_four(small_qlora_job(small_model(Family::llama), DType::uint8)), "fsdp2-local-base");
  CHECK(all_of(map, [](const MappedParameter& p) {
    return p.placement == (p.quantized ? Placement::ignored : Placement::sharded);
  }));
  CHECK(std::ranges::any_of(map.parameters, &MappedParameter::quantized));
}

TEST_CASE("estimate/shard_map: all is sharded under fsdp2 and fsdp1-full-shard, nothing under ddp and zero2") {
  const JobSpec job = on_four(small_lora_job(small_model(Family::qwen2)));
  for (const auto plan : {"fsdp2", "fsdp1-full-shard"})
    CHECK(all_of(map_of(job, plan), [](const MappedParameter& p) { return p.placement == Placement::sharded; }));
  for (const auto plan : {"ddp", "zero2"})
    CHECK(all_of(map_of(job, plan), [](const MappedParameter& p) { return p.placement == Placement::replicated; }));
}

TEST_CASE("estimate/shard_map: ZeRO-3 keeps small parameters whole") {
  JobSpec job = on_four(small_job(small_model(Family::llama)));
  NamedPlan plan = *find_plan("zero3");
  std::get<Zero>(plan.plan).stage3_param_persistence_threshold = 72;  // norms, of hidden_size
  const auto map = shard_map(job, plan);
  REQUIRE(map);
  CHECK(all_of(*map, [](const MappedParameter& p) {
    return p.placement == (p.elements <= 72 ? Placement::replicated : Placement::sharded);
  }));
}

TEST_CASE("estimate/shard_map: names are PEFT's where there is an adapter") {
  JobSpec job = on_four(small_lora_job(small_model(Family::llama)));
  job.adapter->modules_to_save = {"embed_tokens"};
  const auto has = [](const ShardMap& map, std::string_view name) {
    return std::ranges::find(map.parameters, name, &MappedParameter::name) != map.parameters.end();
  };
  const ShardMap map = map_of(job, "fsdp2");
  CHECK(has(map, "base_model.model.model.layers.1.mlp.up_proj.base_layer.weight"));
  CHECK(has(map, "base_model.model.model.layers.1.mlp.up_proj.lora_A.default.weight"));
  CHECK(has(map, "base_model.model.model.layers.0.input_layernorm.weight"));
  CHECK(has(map, "base_model.model.model.embed_tokens.original_module.weight"));
  CHECK(has(map, "base_model.model.model.embed_tokens.modules_to_save.default.weight"));
  job.adapter.reset();
  CHECK(has(map_of(job, "fsdp2"), "model.layers.1.mlp.up_proj.weight"));
}

TEST_CASE("estimate/shard_map: units are the layers first and the root last") {
  const ShardMap map = map_of(on_four(small_job(small_model(Family::llama))), "fsdp2");
  REQUIRE(map.units.size() > 3);
  CHECK(map.units.front().modules == std::vector<std::string>{"model.layers.0"});
  CHECK(map.units.back().modules == std::vector<std::string>{""});
  CHECK(map_of(on_four(small_job(small_model(Family::llama))), "ddp").units.empty());
}

}  // namespace qlp

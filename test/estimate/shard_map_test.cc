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

TEST_CASE("estimate/shard_map: each dimension of a mesh has its placement, and parts of all ranks are the whole") {
  JobSpec job = small_job(small_model(Family::llama));
  job.model.vocab_size = 132;
  job.cluster.world_size = 8;
  job.cluster.mesh.tp = 2;
  NamedPlan plan = *find_plan("fsdp2-hsdp");
  std::get<Fsdp2>(plan.plan).dp_shard_size = 2;
  const auto map = shard_map(job, plan);
  REQUIRE(map);
  const auto axes_of = [&](std::string_view name) {
    const auto found = std::ranges::find(map->parameters, name, &MappedParameter::name);
    REQUIRE(found != map->parameters.end());
    std::string out;
    for (const AxisPlacement& axis : found->axes) out += axis.axis + (axis.dim ? std::to_string(*axis.dim) : "-") + " ";
    return out;
  };
  CHECK(axes_of("model.layers.0.self_attn.q_proj.weight") == "dp_replicate- dp_shard0 tp0 ");
  CHECK(axes_of("model.layers.0.self_attn.o_proj.weight") == "dp_replicate- dp_shard0 tp1 ");
  CHECK(axes_of("model.layers.0.input_layernorm.weight") == "dp_replicate- dp_shard0 tp- ");
  CHECK(axes_of("model.embed_tokens.weight") == "dp_replicate- dp_shard0 tp0 ");
  std::int64_t elements = 0;
  for (const MappedParameter& parameter : map->parameters) elements += parameter.elements;
  job.cluster.mesh = {};
  for (const MappedParameter& parameter : map_of(job, "ddp").parameters) elements -= parameter.elements;
  CHECK(elements == 0);
}

TEST_CASE("estimate/shard_map: stages have what is theirs, once, in the order of the whole model") {
  JobSpec job = small_lora_job(small_model(Family::qwen3));
  job.training.gradient_accumulation_steps = 2;
  job.cluster.world_size = job.cluster.mesh.pp = 2;
  const ShardMap map = map_of(job, "single");
  job.cluster.mesh = {}, job.cluster.world_size = 1;
  const ShardMap whole = map_of(job, "single");
  REQUIRE(map.parameters.size() == whole.parameters.size());
  for (std::size_t i = 0; i < map.parameters.size(); ++i) {
    CHECK(map.parameters[i].name == whole.parameters[i].name);
    CHECK(map.parameters[i].elements == whole.parameters[i].elements);
  }
  CHECK(map.parameters.front().stage == 0);
  CHECK(map.parameters.back().stage == 1);
  CHECK(std::ranges::is_sorted(map.parameters, {}, &MappedParameter::stage));
  // Beside data parallelism each stage has its units; the last one is the whole of any stage.
  job.cluster.world_size = 4, job.cluster.mesh.pp = 2;
  const ShardMap sharded = map_of(job, "fsdp2");
  CHECK(sharded.parameters.size() == map.parameters.size());
  CHECK(all_of(sharded, [](const MappedParameter& p) { return p.placement == Placement::sharded; }));
  const auto layers = static_cast<std::size_t>(job.model.num_hidden_layers);
  REQUIRE(sharded.units.size() == layers + 3);  // and the embedding, the head with its norm
  CHECK(sharded.units.back().modules == std::vector<std::string>{""});
}

TEST_CASE("estimate/shard_map: experts that ranks share lie on a mesh of their own") {
  JobSpec job = small_job(small_model(Family::mixtral));
  job.cluster.world_size = 4;
  job.cluster.mesh.ep = 2;
  const ShardMap map = map_of(job, "fsdp2");
  for (const MappedParameter& parameter : map.parameters) {
    const bool expert = parameter.name.find(".experts.") != std::string::npos;
    CHECK(parameter.axes.front().axis == (expert ? "efsdp" : "dp_shard"));
    CHECK((parameter.axes.back().axis == "ep") == expert);
  }
}

TEST_CASE("estimate/shard_map: what a mesh cannot do is refused as everywhere") {
  JobSpec job = on_four(small_job(small_model(Family::llama)));
  job.cluster.mesh.ep = 2;
  const auto map = shard_map(job, *find_plan("fsdp2"));
  REQUIRE_FALSE(map);
  CHECK(map.error().front().code == "ep-dense");
}

TEST_CASE("estimate/shard_map: units are the layers first and the root last") {
  const ShardMap map = map_of(on_four(small_job(small_model(Family::llama))), "fsdp2");
  REQUIRE(map.units.size() > 3);
  CHECK(map.units.front().modules == std::vector<std::string>{"model.layers.0"});
  CHECK(map.units.back().modules == std::vector<std::string>{""});
  CHECK(map_of(on_four(small_job(small_model(Family::llama))), "ddp").units.empty());
}

TEST_CASE("estimate/shard_map: units of other classes, those below others first") {
  NamedPlan plan = *find_plan("fsdp2");
  std::get<Fsdp2>(plan.plan).transformer_cls_names_to_wrap = {"LlamaDecoderLayer", "LlamaMLP"};
  const auto map = shard_map(on_four(small_job(small_model(Family::llama))), plan);
  REQUIRE(map);
  CHECK(map->units[0].modules == std::vector<std::string>{"model.layers.0.mlp"});
  CHECK(map->units[1].modules == std::vector<std::string>{"model.layers.0"});
  CHECK(map->units[2].modules == std::vector<std::string>{"model.layers.1.mlp"});
}

}  // namespace qlp

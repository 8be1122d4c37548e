#include "report/export_accelerate.h"

#include <string>

#include <doctest/doctest.h>

#include "plan/catalogue.h"
#include "report/sample_report.h"

namespace qlp {

TEST_CASE("report/export_accelerate: an option without a key is an error that names it") {
  JobSpec job = sample_job();
  NamedPlan plan = *find_plan("fsdp2");
  CHECK(accelerate_config(job, plan));
  std::get<Fsdp2>(plan.plan).reshard_after_forward = std::int64_t{2};
  std::get<Fsdp2>(plan.plan).forward_prefetch = 1;
  const auto refused = accelerate_config(job, plan);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().size() == 2);
  CHECK(refused.error().front().key_path == "plans.fsdp2.reshard_after_forward");
  CHECK(refused.error().back().code == "not-in-accelerate");
  plan = *find_plan("fsdp1-full-shard");
  std::get<Fsdp1>(plan.plan).auto_wrap_policy = WrapPolicy::no_wrap;  // PEFT's takes its place
  CHECK(accelerate_config(job, plan).has_value() == !job.adapter.has_value());
  job.cluster.mesh.tp = 2;
  CHECK_FALSE(accelerate_config(job, *find_plan("ddp")));
}

TEST_CASE("report/export_accelerate: ranks that share a sequence are among those that shard") {
  JobSpec job = sample_job();
  job.cluster.world_size = 8;
  job.cluster.mesh = {.cp = 2, .cp_comm_strategy = CpCommStrategy::alltoall};
  const auto text = accelerate_config(job, *find_plan("fsdp2"));
  REQUIRE(text);
  for (const char* line : {"  parallelism_config_dp_replicate_size: 1\n", "  parallelism_config_dp_shard_size: 4\n",
                           "  parallelism_config_cp_size: 2\n", "  parallelism_config_cp_comm_strategy: alltoall\n"})
    CHECK(text->find(line) != std::string::npos);
  NamedPlan plan = *find_plan("fsdp2-hsdp");
  std::get<Fsdp2>(plan.plan).dp_shard_size = 2;
  const auto hybrid = accelerate_config(job, plan);
  REQUIRE(hybrid);
  for (const char* line : {"  parallelism_config_dp_replicate_size: 2\n", "  parallelism_config_dp_shard_size: 2\n",
                           "  parallelism_config_cp_size: 2\n"})
    CHECK(hybrid->find(line) != std::string::npos);
}

TEST_CASE("report/export_accelerate: the classes of units are those that are planned") {
  const JobSpec job = sample_job();
  const auto says = [&](const NamedPlan& plan, const std::string& classes) {
    const auto text = accelerate_config(job, plan);
    REQUIRE(text);
    return text->find("fsdp_transformer_layer_cls_to_wrap: " + classes + "\n") != std::string::npos;
  };
  NamedPlan plan = *find_plan("fsdp2");
  CHECK(says(plan, "LlamaDecoderLayer"));
  std::get<Fsdp2>(plan.plan).transformer_cls_names_to_wrap = {"LlamaAttention", "LlamaMLP"};
  CHECK(says(plan, "LlamaAttention,LlamaMLP"));
  plan = *find_plan("fsdp1-full-shard");
  std::get<Fsdp1>(plan.plan).transformer_cls_names_to_wrap = {"LlamaMLP"};
  CHECK(says(plan, "LlamaMLP"));
}

TEST_CASE("report/export_accelerate: a checkpoint is saved as it is predicted") {
  JobSpec job = sample_job();
  const auto says = [&](const char* plan, const char* type) {
    const auto text = accelerate_config(job, *find_plan(plan));
    REQUIRE(text);
    return text->find("fsdp_state_dict_type: " + std::string(type)) != std::string::npos;
  };
  job.training.checkpoint = StateDictType::automatic;
  CHECK(says("fsdp1-full-shard", "FULL_STATE_DICT"));
  CHECK(says("fsdp2", "SHARDED_STATE_DICT"));
  job.training.checkpoint = StateDictType::full;
  CHECK(says("fsdp2", "FULL_STATE_DICT"));
  job.training.checkpoint = StateDictType::sharded;
  CHECK(says("fsdp1-full-shard", "SHARDED_STATE_DICT"));
}

TEST_CASE("report/export_accelerate: beside DeepSpeed's own file no precision is said, which accelerate refuses") {
  const auto text = accelerate_config(sample_job(), *find_plan("zero2"));
  REQUIRE(text);
  CHECK(text->find("mixed_precision") == std::string::npos);
  CHECK(text->find("deepspeed_config_file: ds_config.json") != std::string::npos);
}

}  // namespace qlp

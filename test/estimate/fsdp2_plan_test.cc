#include "estimate/fsdp2_plan.h"

#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/event_list.h"
#include "small_jobs.h"

using namespace qlp;

namespace {

JobSpec lora_job() {
  JobSpec job;
  job.adapter = AdapterSpec{};
  job.training.bf16 = true;
  job.cluster.world_size = 8;
  return job;
}

JobSpec qlora_job(DType storage) {
  JobSpec job = lora_job();
  job.quantization = QuantizationSpec{};
  job.quantization->quant_storage = storage;
  return job;
}

/// The code of the first refusal; empty if the plan runs.
std::string refusal(const JobSpec& job, const Fsdp2& plan = {}) {
  const auto setup = fsdp2_setup(job, plan, 0, StackProfile(job.stack));
  return setup ? "" : setup.error().front().code;
}

Fsdp2Preparation preparation(const JobSpec& job, const Fsdp2& plan = {}) {
  return fsdp2_setup(job, plan, 0, StackProfile(job.stack)).value().preparation;
}

/// Bytes of what `prepare` frees for good: what is greater than a placeholder and not made to be replaced at once.
std::vector<std::string> freed_in_prepare(const JobSpec& job) {
  const auto run = dry_run(job, Fsdp2{}, 0, RunExtent::preparation);
  REQUIRE(run);
  std::istringstream lines(event_list(*run));
  std::vector<std::string> freed;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(",prepare,to_copy,") == std::string::npos || !line.starts_with("free_requested,")) continue;
    const std::size_t start = line.find(',', line.find(',') + 1) + 1;
    freed.push_back(line.substr(start, line.find(',', start) - start));
  }
  return freed;
}

constexpr Fsdp2 kLocalBase{.reshard_after_forward = true, .ignored_params = Fsdp2Ignored::quantized};

}  // namespace

TEST_CASE("estimate/fsdp2_plan: how a 4-bit base is stored decides whether it is sharded") {
  CHECK(refusal(qlora_job(DType::bfloat16)).empty());
  CHECK(refusal(qlora_job(DType::bfloat16), kLocalBase) == "fsdp2-local-base-floats");
  CHECK(refusal(qlora_job(DType::uint8)) == "fsdp2-integer-storage");
  CHECK(refusal(qlora_job(DType::uint8), kLocalBase).empty());
  CHECK(preparation(qlora_job(DType::uint8), kLocalBase).ignored == Fsdp2Ignored::quantized);
  CHECK(refusal(lora_job(), kLocalBase) == "fsdp2-local-base-floats");
}

TEST_CASE("estimate/fsdp2_plan: integers cannot be sharded before accelerate leaves them out") {
  JobSpec job = qlora_job(DType::uint8);
  job.stack.accelerate = {1, 13, 0};
  CHECK(refusal(job, kLocalBase) == "fsdp2-integer-storage");
}

TEST_CASE("estimate/fsdp2_plan: what becomes of 16-bit parameters depends on accelerate") {
  struct Row {
    Version accelerate;
    Fsdp2Upcast lora, qlora;
    bool splits_root;
  };
  for (const Row& row : {Row{{1, 7, 0}, Fsdp2Upcast::whole_model, Fsdp2Upcast::whole_model, false},
                         Row{{1, 12, 0}, Fsdp2Upcast::whole_model, Fsdp2Upcast::whole_model, false},
                         Row{{1, 13, 0}, Fsdp2Upcast::lost, Fsdp2Upcast::lost, false},
                         Row{{1, 14, 0}, Fsdp2Upcast::trained_parameters, Fsdp2Upcast::none, true}}) {
    JobSpec lora = lora_job(), qlora = qlora_job(DType::bfloat16);
    lora.stack.accelerate = qlora.stack.accelerate = row.accelerate;
    CHECK(preparation(lora).upcast == row.lora);
    CHECK(preparation(qlora).upcast == row.qlora);
    CHECK(preparation(lora).splits_root == row.splits_root);
    lora.training.bf16 = false;
    CHECK(preparation(lora).upcast == Fsdp2Upcast::none);
  }
}

TEST_CASE("estimate/fsdp2_plan: OLMo 2 cannot be checkpointed without reentry where only the forward pass casts") {
  JobSpec job = lora_job();
  job.model.family = Family::olmo2;
  job.stack.torch = {2, 8, 0};
  job.stack.transformers = {4, 57, 1};
  CHECK(refusal(job).empty());
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  CHECK(refusal(job) == "fsdp2-recomputed-dtype");
  job.stack.torch = {2, 14, 1};
  CHECK(refusal(job).empty());
}

TEST_CASE("estimate/fsdp2_plan: a tied table beside its trained copy would be in two groups") {
  JobSpec job = lora_job();
  job.model.tie_word_embeddings = true;
  job.adapter->modules_to_save = {"embed_tokens"};
  CHECK(refusal(job) == "fsdp2-shared-parameter");
  job.stack.torch = {2, 8, 0};
  CHECK(refusal(job).empty());
}

TEST_CASE("estimate/fsdp2_plan: a hybrid plan shards within a node, or over as many ranks as it is told") {
  JobSpec job = lora_job();
  job.cluster.world_size = 32;
  const auto options = [&](const Fsdp2& plan, std::int64_t rank) {
    return fsdp2_setup(job, plan, rank, StackProfile(job.stack)).value().options;
  };
  CHECK(options({.hybrid = true}, 0).world_size == 8);
  CHECK(options({.hybrid = true}, 0).replicas == 4);
  CHECK(options({.hybrid = true}, 13).rank == 5);
  CHECK(options({.hybrid = true, .dp_shard_size = 16}, 13).rank == 13);
  CHECK(options({.hybrid = true, .dp_shard_size = 16}, 13).replicas == 2);
  CHECK(options({}, 13).replicas == 1);
  CHECK(refusal(job, {.hybrid = true, .dp_shard_size = 5}) == "fsdp2-mesh");
  CHECK(refusal(job, {.hybrid = true, .dp_shard_size = 32}) == "fsdp2-nothing-replicated");
  CHECK(refusal(job, {.hybrid = true, .dp_shard_size = 1}) == "fsdp2-nothing-sharded");
  job.cluster.world_size = 8;
  CHECK(refusal(job, {.hybrid = true}) == "fsdp2-nothing-replicated");
}

TEST_CASE("estimate/fsdp2_plan: parameters are resharded to a factor of the ranks that shard them") {
  JobSpec job = lora_job();
  CHECK(refusal(job, {.reshard_after_forward = 4}).empty());
  CHECK(refusal(job, {.reshard_after_forward = 3}) == "fsdp2-reshard-size");
  job.cluster.world_size = 32;
  CHECK(refusal(job, {.reshard_after_forward = 16}).empty());
  CHECK(refusal(job, {.reshard_after_forward = 16, .hybrid = true}) == "fsdp2-reshard-size");
}

TEST_CASE("estimate/fsdp2_plan: the policy is that of the trainer's mixed precision unless the plan says another") {
  JobSpec job = lora_job();
  const auto policy = [&](const Fsdp2& plan) {
    return fsdp2_setup(job, plan, 0, StackProfile(job.stack)).value().options.precision;
  };
  CHECK(policy({}).param_dtype == DType::bfloat16);
  CHECK(policy({}).output_dtype == DType::bfloat16);
  CHECK(policy({.mp_policy = {.reduce_dtype = PolicyDType::float32}}).reduce_dtype == DType::float32);
  CHECK_FALSE(policy({.mp_policy = {.output_dtype = PolicyDType::none}}).output_dtype);
  CHECK_FALSE(policy({.mp_policy = {.cast_forward_inputs = false}}).cast_forward_inputs);
  job.training.bf16 = false;
  CHECK_FALSE(policy({}).param_dtype);
  job.training.fp16 = true;
  CHECK(policy({}).reduce_dtype == DType::float16);
}

TEST_CASE("estimate/fsdp2_plan: inputs that nobody casts must have the dtype of the weights") {
  const Fsdp2 plan{.mp_policy = {.output_dtype = PolicyDType::float32, .cast_forward_inputs = false}};
  CHECK(refusal(lora_job(), plan) == "fsdp2-input-dtype");
  CHECK(refusal(lora_job(), {.mp_policy = {.output_dtype = PolicyDType::float32}}).empty());
  CHECK(refusal(lora_job(), {.mp_policy = {.cast_forward_inputs = false}}).empty());
}

TEST_CASE("estimate/fsdp2_plan: what can be left out of sharding") {
  CHECK(refusal(lora_job(), {.ignored_params = Fsdp2Ignored::base}).empty());
  CHECK(refusal(lora_job(), {.ignored_params = Fsdp2Ignored::adapter}).empty());
  CHECK(refusal(qlora_job(DType::uint8), {.ignored_params = Fsdp2Ignored::base}).empty());
  JobSpec job = lora_job();
  job.loading = Loading::rank0;
  CHECK(refusal(job, {.ignored_params = Fsdp2Ignored::base}) == "fsdp2-ignored-loading");
  job = lora_job();
  job.adapter.reset();
  CHECK(refusal(job, {.ignored_params = Fsdp2Ignored::base}) == "fsdp2-ignores-all");
  job = lora_job();
  job.stack.torch = {2, 6, 0};
  job.adapter->autocast_adapter_dtype = false;
  CHECK(refusal(job, {.ignored_params = Fsdp2Ignored::base}) == "fsdp2-ignored-params");
}

TEST_CASE("estimate/fsdp2_plan: what older accelerates cannot set up or load") {
  JobSpec job = lora_job();
  job.cluster.world_size = 16;
  job.loading = Loading::rank0;
  job.stack.accelerate = {1, 9, 0};
  CHECK(refusal(job, {.hybrid = true}) == "fsdp2-hybrid-stack");
  CHECK(refusal(job, {.ignored_params = Fsdp2Ignored::adapter}) == "fsdp2-ignored-params");
  job.stack.accelerate = {1, 10, 0};
  CHECK(refusal(job, {.hybrid = true}) == "fsdp2-hybrid-loading");
  job.stack.accelerate = {1, 11, 0};
  CHECK(refusal(job, {.hybrid = true}).empty());
  CHECK(refusal(job, {.cpu_offload = true}) == "fsdp2-offload-loading");
  job.loading = Loading::cpu;
  CHECK(refusal(job, {.cpu_offload = true}).empty());
  job.loading = Loading::rank0;
  job.stack.accelerate = {1, 13, 0};
  CHECK(refusal(job, {.cpu_offload = true}).empty());
  job.stack.accelerate = {1, 12, 0};
  job.stack.torch = {2, 6, 0};
  CHECK(refusal(job) == "fsdp2-not-in-stack");
}

TEST_CASE("estimate/fsdp2_plan: old stacks") {
  JobSpec job = lora_job();
  job.stack.torch = {2, 4, 1};
  CHECK(refusal(job) == "fsdp2-not-in-stack");
  job.stack.torch = {2, 7, 0};
  CHECK(refusal(job) == "fsdp2-mixed-dtypes");
  job.adapter->autocast_adapter_dtype = false;
  CHECK(refusal(job).empty());
}

// Seen in the memory history of torch 2.14.1 under accelerate 1.15.0: Llama 3.2 1B cut to a layer, full, bf16, 3 ranks.
TEST_CASE("estimate/fsdp2_plan: float32 copies go as the state dict goes, tables and the last trained one last") {
  JobSpec job = small_job(llama_1b(1));
  job.model.tie_word_embeddings = true;
  job.cluster.world_size = 3;
  job.loading = Loading::gpu;
  CHECK(freed_in_prepare(job) == std::vector<std::string>{"16777216", "4194304", "4194304", "16777216", "67108864",
                                                          "67108864", "67108864", "8192", "8192", "1050673152",
                                                          "8192"});
}

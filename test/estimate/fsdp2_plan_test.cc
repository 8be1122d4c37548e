#include "estimate/fsdp2_plan.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

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

constexpr Fsdp2 kLocalBase{.reshard_after_forward = true, .local_base = true};

}  // namespace

TEST_CASE("estimate/fsdp2_plan: how a 4-bit base is stored decides whether it is sharded") {
  CHECK(refusal(qlora_job(DType::bfloat16)).empty());
  CHECK(refusal(qlora_job(DType::bfloat16), kLocalBase) == "fsdp2-local-base-floats");
  CHECK(refusal(qlora_job(DType::uint8)) == "fsdp2-integer-storage");
  CHECK(refusal(qlora_job(DType::uint8), kLocalBase).empty());
  CHECK(preparation(qlora_job(DType::uint8), kLocalBase).ignores_quantized);
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

TEST_CASE("estimate/fsdp2_plan: old stacks") {
  JobSpec job = lora_job();
  job.stack.torch = {2, 4, 1};
  CHECK(refusal(job) == "fsdp2-not-in-stack");
  job.stack.torch = {2, 7, 0};
  CHECK(refusal(job) == "fsdp2-mixed-dtypes");
  job.adapter->autocast_adapter_dtype = false;
  CHECK(refusal(job).empty());
}

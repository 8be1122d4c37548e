#include "estimate/optimizer_rules.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "estimate/optimizer_refusal.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

using namespace qlp;

// As seen with torch 2.8.0, transformers 4.57.1, bitsandbytes 0.50.2.
TEST_CASE("estimate/optimizer_rules: FSDP2's DTensors are nothing for bitsandbytes, Adafactor and Adagrad") {
  const JobSpec job = small_lora_job(small_model(Family::llama));
  for (const char* plan : {"fsdp2", "fsdp2-no-reshard"}) {
    CHECK(refused(job, "paged_adamw_8bit", plan) == "bnb-optimizer-on-dtensor");
    CHECK(refused(job, "lion_32bit", plan) == "bnb-optimizer-on-dtensor");
    CHECK(refused(job, "adafactor", plan) == "adafactor-on-dtensor");
    CHECK(refused(job, "rmsprop", plan).empty());
    CHECK(refused(job, "sgd", plan).empty());
  }
  JobSpec older = job;
  older.stack.torch = Version{2, 8, 0};
  CHECK(refused(older, "adagrad", "fsdp2") == "fsdp2-adagrad");
  CHECK(refused(job, "adagrad", "fsdp2").empty());
}

TEST_CASE("estimate/optimizer_rules: other plans take them") {
  const JobSpec job = small_lora_job(small_model(Family::llama));
  for (const char* plan : {"single", "ddp", "fsdp1-full-shard"}) {
    CHECK(refused(job, "paged_adamw_8bit", plan).empty());
    CHECK(refused(job, "adafactor", plan).empty());
  }
}

// Seen with torch 2.8.0 and 2.14.1, bitsandbytes 0.50.2.
TEST_CASE("estimate/optimizer_rules: what updates parameters on the host") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  const auto refused_offloaded = [&](const char* optimizer) {
    job.training.optimizer = named_optimizer(optimizer);
    const auto refusals = check_optimizer(job, Fsdp1{.cpu_offload = true}, StackProfile(job.stack));
    return refusals.empty() ? "" : refusals.front().code;
  };
  for (const char* optimizer :
       {"adamw_torch", "adagrad", "adafactor", "paged_adamw_8bit", "lion_32bit", "ademamix_8bit", "lomo"})
    CHECK(refused_offloaded(optimizer).empty());
  CHECK(refused_offloaded("paged_ademamix_8bit") == "offloaded-paged-ademamix");
  CHECK(refused_offloaded("adamw_torch_8bit") == "offloaded-optimizer");
  CHECK(refused_offloaded("adalomo") == "offloaded-adalomo");
  job.stack.bitsandbytes = Version{0, 49, 2};
  CHECK(refused_offloaded("paged_adamw_8bit") == "offloaded-bitsandbytes");
}

TEST_CASE("estimate/optimizer_rules: Adagrad's sums are made before FSDP1 trains in float32") {
  JobSpec job = small_job(small_model(Family::llama));
  CHECK(refused(job, "adagrad", "fsdp1-full-shard").empty());
  job.stack.torch = Version{2, 8, 0};
  CHECK(refused(job, "adagrad", "fsdp1-full-shard") == "fsdp1-adagrad-dtypes");
  const auto offloaded = check_optimizer(job, Fsdp1{.cpu_offload = true}, StackProfile(job.stack));
  CHECK(offloaded.empty());  // one by one
  JobSpec adapters = small_lora_job(small_model(Family::llama));
  adapters.stack = job.stack;
  CHECK(refused(adapters, "adagrad", "fsdp1-full-shard").empty());  // in float32 from the beginning
  job.training.bf16 = false;
  CHECK(refused(job, "adagrad", "fsdp1-full-shard").empty());
}

TEST_CASE("estimate/optimizer_rules: bitsandbytes' RMSprop in 32 bits wants no gradients in bfloat16") {
  JobSpec job = small_job(small_model(Family::llama));
  CHECK(refused(job, "rmsprop_bnb", "single") == "bnb-rmsprop-bfloat16");
  CHECK(refused(job, "rmsprop_bnb_8bit", "ddp") == "bnb-rmsprop-bfloat16");  // norms are small
  CHECK(refused(job, "rmsprop_bnb", "fsdp1-full-shard").empty());            // float32 there
  CHECK(refused(small_lora_job(small_model(Family::llama)), "rmsprop_bnb", "single").empty());
  job.dtype = DType::float32;
  CHECK(refused(job, "rmsprop_bnb", "single").empty());
}

TEST_CASE("estimate/optimizer_rules: what came with later versions") {
  JobSpec job = small_job(small_model(Family::llama));
  job.stack.bitsandbytes = Version{0, 43, 3};
  CHECK(refused(job, "ademamix", "single") == "bnb-ademamix");
  for (const char* plan : {"single", "ddp", "fsdp1-full-shard", "fsdp2"})
    CHECK(refused(job, "stable_adamw", plan).empty());
  job.stack.transformers = Version{4, 48, 1};
  CHECK(refused(job, "stable_adamw", "single") == "optimizer-not-in-stack");
  CHECK(refused(job, "schedule_free_radam", "single") == "optimizer-not-in-stack");
  CHECK(refused(job, "schedule_free_adamw", "single").empty());
}

TEST_CASE("estimate/optimizer_rules: AdaLOMO has no sums for stacks of experts") {
  JobSpec job = small_job(small_model(Family::mixtral));
  CHECK(refused(job, "adalomo", "single") == "adalomo-experts");
  CHECK(refused(job, "lomo", "single").empty());
  job.stack.transformers = Version{4, 57, 1};
  CHECK(refused(job, "adalomo", "single").empty());
}

// The same.
TEST_CASE("estimate/optimizer_rules: LOMO runs where gradients belong to the parameters") {
  const JobSpec job = small_job(small_model(Family::llama)), lora = small_lora_job(small_model(Family::llama));
  for (const char* plan : {"single", "ddp", "fsdp1-full-shard", "fsdp2"}) {
    CHECK(refused(job, "lomo", plan).empty());
    CHECK(refused(lora, "lomo", plan).empty());
  }
  for (const char* plan : {"zero1", "zero2"}) CHECK(refused(job, "lomo", plan) == "lomo-zero");
  CHECK(refused(job, "adalomo", "fsdp2") == "adalomo-on-dtensor");
  CHECK(refused(lora, "adalomo", "single").empty());
  CHECK(refused(lora, "adalomo", "fsdp1-full-shard").empty());
  JobSpec stepping = job;
  stepping.training.optimizer = named_optimizer("lomo");
  CHECK(optimizer_warnings(stepping, Ddp{}).size() == 1);
  CHECK(optimizer_warnings(stepping, Single{}).empty());
}

// As run with torchao 0.18 on torch 2.14.1, transformers 5.24.0.
TEST_CASE("estimate/optimizer_rules: torchao's take DTensors") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  for (const char* optimizer : {"adamw_torch_8bit", "adamw_torch_4bit"}) {
    for (const char* plan : {"single", "ddp", "fsdp1-full-shard", "fsdp2"})
      CHECK(refused(job, optimizer, plan).empty());
  }
  for (const char* plan : {"zero1", "zero2", "zero3"}) {
    CHECK(refused(job, "adamw_torch_8bit", plan).empty());
    CHECK(refused(job, "adamw_torch_4bit", plan) == "torchao-under-zero");
  }
  job.training.optimizer = named_optimizer("adamw_torch_8bit");
  const Zero offloaded{.offload_optimizer = {.device = OffloadDevice::cpu}};
  CHECK(check_optimizer(job, offloaded, StackProfile(job.stack)).front().code == "torchao-under-zero");
}

TEST_CASE("estimate/optimizer_rules: the optimizer of DeepSpeed's file is judged in the place of the Trainer's") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.training.optim_targets = OptimTargets{.modules = {"q_proj"}};
  const auto refused_by_own = [&](const char* optimizer) {
    job.training.optimizer = named_optimizer(optimizer);
    const Zero plan{.optimizer = {.type = ZeroOptimizerType::adamw}};
    const auto refusals = check_optimizer(job, plan, StackProfile(job.stack));
    return refusals.empty() ? "" : refusals.front().code;
  };
  for (const char* replaced : {"adamw_torch_4bit", "muon", "galore_adamw"}) {
    CAPTURE(replaced);
    CHECK(refused(job, replaced, "zero2") != "");
    CHECK(refused_by_own(replaced) == "");
  }
  CHECK(refused_by_own("lomo") == "lomo-zero");  // which the Trainer's step looks for
  job.stack.transformers = Version{4, 47, 0};
  CHECK(refused_by_own("stable_adamw") == "optimizer-not-in-stack");  // TrainingArguments does not know the name
}

TEST_CASE("estimate/optimizer_rules: StableAdamW's kernels find no memory in DTensors") {
  JobSpec job = small_job(small_model(Family::llama));
  job.training.optimizer = named_optimizer("stable_adamw");
  const auto warnings = optimizer_warnings(job, Fsdp2{});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().code == "stable-adamw-on-dtensor");
  CHECK(optimizer_warnings(job, Fsdp2{.cpu_offload = true}).empty());  // on the host it takes no kernels
  CHECK(optimizer_warnings(job, Fsdp1{}).empty());
}

#include "estimate/low_rank_rules.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/optimizer_refusal.h"
#include "estimate/optimizer_rules.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

using namespace qlp;

TEST_CASE("estimate/low_rank_rules: APOLLO takes whole parameters, and names what it projects") {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  CHECK(refused(job, "apollo_adamw", "single") == "apollo-targets");
  job.training.optim_targets = {.all_linear = true};
  CHECK(refused(job, "apollo_adamw", "single").empty());
  CHECK(refused(job, "apollo_adamw", "ddp").empty());
  for (const char* plan : {"fsdp2", "fsdp1-full-shard", "zero2"})
    CHECK(refused(job, "apollo_adamw", plan) == "apollo-sharded");
  CHECK(refused(job, "apollo_adamw_layerwise", "single").empty());
  CHECK(refused(job, "apollo_adamw_layerwise", "ddp") == "layerwise-ddp");
  job.training.gradient_accumulation_steps = 2;
  CHECK(refused(job, "apollo_adamw_layerwise", "single") == "layerwise-accumulation");
  job.stack.transformers = Version{4, 48, 1};
  CHECK(refused(job, "apollo_adamw", "single") == "optimizer-not-in-stack");
}

TEST_CASE("estimate/low_rank_rules: APOLLO needs a linear layer to project") {
  JobSpec job = small_job(small_model(Family::llama));
  const auto refusal_for = [&job](std::vector<std::string> modules) {
    job.training.optim_targets = {.modules = std::move(modules)};
    return refused(job, "apollo_adamw", "single");
  };
  for (const bool lora : {false, true}) {
    if (lora) job.adapter = small_lora();
    CHECK(refusal_for({}) == "apollo-no-target");
    CHECK(refusal_for({"nothing_here"}) == "apollo-no-target");
    CHECK(refusal_for({"norm"}) == "apollo-no-target");  // no linear layer
    CHECK(refusal_for({"nothing_here", "q_proj"}).empty());
    for (const bool tied : {false, true}) {
      job.model.tie_word_embeddings = tied;
      CHECK(refusal_for({"lm_head"}).empty());
    }
  }
}

TEST_CASE("estimate/low_rank_rules: GaLore takes whole parameters whose vectors cuSOLVER finds") {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  CHECK(refused(job, "galore_adamw", "single") == "galore-targets");
  job.training.optim_targets = {.modules = {"q_proj", "up_proj"}};
  for (const char* name : {"galore_adamw", "galore_adamw_8bit", "galore_adafactor"}) {
    CHECK(refused(job, name, "single").empty());
    CHECK(refused(job, name, "ddp").empty());
    CHECK(refused(job, name, "fsdp1-full-shard") == "galore-sharded");
    CHECK(refused(job, name, "zero3") == "galore-sharded");
  }
  CHECK(refused(job, "galore_adamw", "fsdp2").empty());
  CHECK(refused(job, "galore_adamw_8bit", "fsdp2") == "bnb-optimizer-on-dtensor");
  CHECK(refused(job, "galore_adafactor", "fsdp2") == "adafactor-on-dtensor");
  CHECK(refused(job, "galore_adamw_layerwise", "single").empty());
  CHECK(refused(job, "galore_adamw_layerwise", "ddp") == "layerwise-ddp");
  job.model.hidden_size = 40000, job.model.intermediate_size = 60000;
  CHECK(refused(job, "galore_adamw", "single") == "galore-svd-size");
}

// As seen with torch 2.8.0 and 2.14.1.
TEST_CASE("estimate/low_rank_rules: GaLore's products of DTensors") {
  JobSpec job = small_job(small_model(Family::llama));
  job.training.optim_targets = {.modules = {"q_proj", "up_proj"}};
  job.cluster.world_size = 1000;  // more than the rows of a matrix
  CHECK(refused(job, "galore_adamw", "fsdp2") == "galore-sharded");
  job.cluster.world_size = 4;
  job.training.optimizer = named_optimizer("galore_adamw");
  low_rank_of(job.training.optimizer.kind)->proj_type = ProjectionSide::full;
  CHECK(check_optimizer(job, Fsdp2{}, StackProfile(job.stack)).empty());
  job.stack.torch = Version{2, 8, 0};
  CHECK_FALSE(check_optimizer(job, Fsdp2{}, StackProfile(job.stack)).empty());
  CHECK_FALSE(check_optimizer(job, Fsdp2{.ignored_params = Fsdp2Ignored::adapter}, StackProfile(job.stack)).empty());
}

// 'The size of tensor a (8192) must match the size of tensor b (64)', as seen with apollo_torch 1.0.
TEST_CASE("estimate/low_rank_rules: APOLLO's factors by channel need the longer side whole") {
  JobSpec job = small_job(small_model(Family::llama));
  job.training.optim_targets = {.modules = {"up_proj"}};  // taller than wide
  const auto fits = [&job](const Apollo& apollo) {
    job.training.optimizer.kind = apollo;
    return check_optimizer(job, Single{}, StackProfile(job.stack)).empty();
  };
  for (const auto proj : {Apollo::Projector::random, Apollo::Projector::svd}) {
    CHECK(fits({.proj = proj}));
    CHECK(fits({.proj = proj, .low_rank = {.proj_type = ProjectionSide::right}}));
    CHECK_FALSE(fits({.proj = proj, .low_rank = {.proj_type = ProjectionSide::left}}));
    CHECK_FALSE(fits({.proj = proj, .low_rank = {.proj_type = ProjectionSide::reverse_std}}));
    CHECK(fits({.proj = proj, .low_rank = {.rank = 1, .proj_type = ProjectionSide::left}}));
    CHECK(fits({.proj = proj, .scale_type = Apollo::Scale::tensor, .low_rank = {.proj_type = ProjectionSide::left}}));
  }
}

// As seen with torch 2.8.0 and 2.14.1, transformers 4.57.1 and 5.24.0, accelerate 1.15.0, DeepSpeed 0.18.3.
TEST_CASE("estimate/low_rank_rules: FSDP1 without the original parameters leaves nothing to project") {
  JobSpec job = small_job(small_model(Family::llama));
  job.training.optim_targets = {.all_linear = true};
  for (const char* optimizer : {"galore_adamw", "galore_adamw_8bit", "galore_adafactor", "apollo_adamw"}) {
    job.training.optimizer = named_optimizer(optimizer);
    const auto refusals = check_optimizer(job, Fsdp1{.use_orig_params = false}, StackProfile(job.stack));
    CHECK(refusals.empty());
    const auto warnings = optimizer_warnings(job, Fsdp1{.use_orig_params = false});
    REQUIRE(warnings.size() == 1);
    CHECK(warnings.front().code == "nothing-projected");
  }
  job.training.optim_targets = {.pattern = ".*q_proj"};
  CHECK_FALSE(check_optimizer(job, Fsdp1{.use_orig_params = false}, StackProfile(job.stack)).empty());
}

// transformers before 4.48, as the oracle runs 4.39.3 and 4.43.3.
#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

constexpr StackVersions k4393{{2, 2, 2}, {4, 39, 3}, {0, 11, 1}, {0, 32, 1}, {0, 43, 1}};
constexpr StackVersions k4433{{2, 4, 0}, {4, 43, 3}, {0, 12, 0}, {0, 33, 0}, {0, 43, 2}};
constexpr StackVersions k4481{{2, 4, 1}, {4, 48, 1}, {0, 13, 2}, {1, 0, 1}, {0, 43, 3}};

JobSpec old_job(Family family, const StackVersions& stack) {
  JobSpec job = small_lora_job(small_model(family));
  job.training.bf16 = false;
  job.training.attention = Attention::flash_attention_2;
  job.dtype = DType::float16;
  job.stack = stack;
  return job;
}

DryRun run(const JobSpec& job, const ShardingPlan& plan = Single{}) {
  auto result = dry_run(job, plan, 0);
  REQUIRE(result);
  return std::move(*result);
}

std::int64_t peak_of(const JobSpec& job, const char* name) {
  const DryRun dry = run(job);
  for (const Phase& phase : dry.timeline.phases())
    if (phase.name == name) return static_cast<std::int64_t>(phase.requested.bytes);
  FAIL("no such phase");
  return 0;
}

std::int64_t held(const DryRun& dry) { return static_cast<std::int64_t>(dry.end.requested.current); }

}  // namespace

TEST_CASE("estimate/old_stacks: every layer of Mistral keeps tables of all positions until 4.41, Llama until 4.40") {
  const auto tables_between = [](Family family, Version before, Version after) {
    JobSpec job = old_job(family, k4393);
    job.stack.transformers = before;
    const std::int64_t with = held(run(job));
    job.stack.transformers = after;
    return with - held(run(job));
  };
  const ModelSpec model = small_model(Family::mistral);
  const std::int64_t tables = model.num_hidden_layers * 2 * model.max_position_embeddings * model.head_dim * 2;
  CHECK(tables_between(Family::mistral, {4, 41, 2}, {4, 42, 4}) == tables);
  CHECK(tables_between(Family::llama, {4, 40, 2}, {4, 41, 2}) == tables);
}

TEST_CASE("estimate/old_stacks: PEFT before 0.12 leaves adapters in the dtype of the base") {
  JobSpec job = old_job(Family::mistral, k4433);
  const DryRun newer = run(job);
  job.stack.peft = {0, 11, 1};
  const DryRun older = run(job);
  CHECK(held(newer) - held(older) == static_cast<std::int64_t>(newer.elements.trainable) * (12 - 6));
}

TEST_CASE("estimate/old_stacks: the logits of the model's own dtype are gone before the loss until 4.47") {
  const auto forward = [](const StackVersions& stack) {
    JobSpec job = old_job(Family::mistral, stack);
    job.model.vocab_size = 500'000;
    job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
    return peak_of(job, "micro2.forward");
  };
  const std::int64_t half = std::int64_t{16} * 500'000 * 2;
  const std::int64_t saved = forward(k4481) - forward(k4433);
  CHECK(saved > half - half / 100);
  CHECK(saved < half + half / 100);
}

TEST_CASE("estimate/old_stacks: gradients in float16 are not scaled back, except by FSDP1") {
  JobSpec job = old_job(Family::mistral, k4433);
  job.training.fp16 = true;
  CHECK(dry_run(job, Single{}, 0));
  job.stack.peft = {0, 11, 1};
  const auto refused = dry_run(job, Single{}, 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "fp16-gradients");
  job.cluster.world_size = 2;
  CHECK(dry_run(job, Fsdp1{}, 0));
  CHECK_FALSE(dry_run(job, Ddp{}, 0));
}

}  // namespace qlp

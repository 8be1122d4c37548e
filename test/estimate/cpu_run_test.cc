#include "estimate/cpu_run.h"

#include <cmath>

#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_unsharded;
using test::check_same_peaks;
using test::on_ranks;

JobSpec computed_job(const ModelSpec& model) {
  JobSpec job = small_lora_job(model);
  job.training.num_steps = 4;
  return job;
}

/// Everything in float32, everything trained.
JobSpec full_float_job(const ModelSpec& model) {
  JobSpec job = small_job(model);
  job.training.num_steps = 2;
  job.training.bf16 = false;
  job.dtype = DType::float32;
  job.training.optimizer = named_optimizer("sgd");
  return job;
}

}  // namespace

TEST_CASE("estimate/cpu_run: every dense family learns, with the memory that a dry run says") {
  for (const Family family : kAllFamilies) {
    CAPTURE(static_cast<int>(family));
    const JobSpec job = computed_job(small_model(family));
    const auto runs = run_on_cpu(job, Single{}, {.learning_rate = 3e-2});
    REQUIRE(runs);
    const auto& steps = runs->front().steps;
    REQUIRE(steps.size() == 4);
    for (const StepNumbers& step : steps) {
      CHECK(std::isfinite(step.loss));
      CHECK(step.grad_norm > 0);
    }
    CHECK(steps.back().loss < steps.front().loss);
    check_same_peaks(job, Single{}, runs->front(), 0);
  }
}

TEST_CASE("estimate/cpu_run: DDP computes what one rank does") {
  const JobSpec job = on_ranks(full_float_job(small_model(Family::llama)), 3);
  for (const bool view : {false, true}) check_equals_unsharded(job, Ddp{.gradient_as_bucket_view = view});
}

TEST_CASE("estimate/cpu_run: FSDP2 computes what one rank does") {
  const JobSpec job = on_ranks(full_float_job(small_model(Family::llama)), 4);
  SUBCASE("reshards") { check_equals_unsharded(job, Fsdp2{}); }
  SUBCASE("does not reshard") { check_equals_unsharded(job, Fsdp2{.reshard_after_forward = false}); }
  SUBCASE("reshards to fewer ranks") { check_equals_unsharded(job, Fsdp2{.reshard_after_forward = std::int64_t{2}}); }
  SUBCASE("replicates shards") { check_equals_unsharded(job, Fsdp2{.hybrid = true, .dp_shard_size = 2}); }
}

TEST_CASE("estimate/cpu_run: FSDP1 computes what one rank does") {
  const JobSpec job = on_ranks(full_float_job(small_model(Family::llama)), 4);
  for (const bool original : {false, true}) {
    CAPTURE(original);
    const auto check = [&](ShardingStrategy strategy) {
      check_equals_unsharded(job, Fsdp1{.sharding_strategy = strategy, .use_orig_params = original});
    };
    SUBCASE("full shard") { check(ShardingStrategy::full_shard); }
    SUBCASE("shard grad op") { check(ShardingStrategy::shard_grad_op); }
    SUBCASE("no shard") { check(ShardingStrategy::no_shard); }
  }
}

TEST_CASE("estimate/cpu_run: ZeRO computes what one rank does") {
  const JobSpec job = on_ranks(full_float_job(small_model(Family::llama)), 4);
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    check_equals_unsharded(job, Zero{.stage = stage, .reduce_bucket_size = 5000});
    check_equals_unsharded(job, Zero{.stage = stage,
                                     .reduce_bucket_size = 200'000,
                                     .overlap_comm = true,
                                     .stage3_prefetch_bucket_size = 8000,
                                     .stage3_param_persistence_threshold = 100});
  }
}

}  // namespace qlp

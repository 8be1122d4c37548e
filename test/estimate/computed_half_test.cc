// Sixteen bits where the runtime scales the loss, skips steps, or forgets what others say.
#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_one_rank;
using test::check_same_peaks;
using test::compute_run;
using test::ComputedRun;
using test::distance;
using test::on_ranks;
using test::Tolerance;

constexpr double kLr = 2e-2;
constexpr Tolerance kHalf{.loss = 2e-3, .weights = 0.01};

JobSpec half_job(std::int64_t ranks) {
  JobSpec job = small_job(small_model(Family::llama));
  job.dtype = DType::float32;
  job.training.bf16 = false, job.training.fp16 = true;
  job.training.num_steps = 3;
  job.training.optimizer = named_optimizer("sgd");
  return on_ranks(job, ranks);
}

Zero zero(int stage, std::int64_t initial_scale_power) {
  return {.stage = stage,
          .reduce_bucket_size = 5000,
          .stage3_param_persistence_threshold = 200,
          .fp16 = {.initial_scale_power = initial_scale_power}};
}

void check(const JobSpec& job, const ShardingPlan& plan, const Tolerance& tolerance = kHalf) {
  check_equals_one_rank(job, plan, {.replicas = job.cluster.world_size, .tolerance = tolerance, .lr = 5 * kLr});
}

}  // namespace

TEST_CASE("estimate/computed_half: float16 under ZeRO computes what one rank does, and scales the loss by itself") {
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    check(half_job(3), zero(stage, 10));
  }
}

TEST_CASE("estimate/computed_half: float16 under ZeRO with offload, in several micro steps, without clipping") {
  JobSpec job = half_job(2);
  job.training.gradient_accumulation_steps = 2;
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    Zero plan = zero(stage, 10);
    plan.offload_optimizer.device = OffloadDevice::cpu, plan.zero_force_ds_cpu_optimizer = false;
    check(job, plan);
    plan.offload_optimizer.device = OffloadDevice::none;
    JobSpec unclipped = job;
    unclipped.training.max_grad_norm = 0;
    check(unclipped, plan);
  }
}

TEST_CASE("estimate/computed_half: a step whose gradients overflow on one rank is left out on all") {
  JobSpec job = half_job(2);
  const ComputedRun untrained = compute_run(job, zero(2, 0), 0);
  for (const int stage : {1, 2, 3})
    for (const bool offloads : {false, true}) {
      CAPTURE(stage);
      CAPTURE(offloads);
      Zero plan = zero(stage, 40);
      if (offloads) plan.offload_optimizer.device = OffloadDevice::cpu, plan.zero_force_ds_cpu_optimizer = false;
      const ComputedRun run = compute_run(job, plan, kLr);
      CHECK(distance(run.weights, untrained.weights) == 0);
      for (const DryRun& rank : run.ranks)
        CHECK(std::ranges::all_of(rank.steps, [](const StepNumbers& step) { return step.skipped; }));
      plan.fp16.loss_scale = 128;  // that stays, and fits
      CHECK(distance(compute_run(job, plan, kLr).weights, untrained.weights) > 1e-3);
    }
}

TEST_CASE("estimate/computed_half: bfloat16 under ZeRO looks for overflow where it is told to") {
  JobSpec job = half_job(2);
  job.training.fp16 = false, job.training.bf16 = true;
  for (const int stage : {1, 2, 3}) {
    Zero plan = zero(stage, 16);
    plan.bf16.check_grad_overflow = true;
    check(job, plan, {.loss = 0.02, .weights = 0.05});
  }
}

TEST_CASE("estimate/computed_half: stages of a pipeline in float16 scale one loss") {
  JobSpec job = half_job(1);
  job.model.tie_word_embeddings = false;
  job.training.gradient_accumulation_steps = 3;
  const ComputedRun whole = compute_run(job, Single{}, 5 * kLr);
  job.cluster.world_size = job.cluster.mesh.pp = 2;
  const auto stages = run_on_cpu(job, Single{}, {.learning_rate = 5 * kLr});
  REQUIRE(stages);
  REQUIRE(stages->size() == 2);
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(stages->back().steps[step].loss == doctest::Approx(test::loss_of(whole, step)).epsilon(kHalf.loss));
    const double norm = whole.ranks.front().steps[step].grad_norm;
    for (const DryRun& stage : *stages)
      CHECK(stage.steps[step].grad_norm == doctest::Approx(norm).epsilon(10 * kHalf.loss));
  }
  for (const std::int64_t rank : {0, 1})
    check_same_peaks(job, Single{}, stages->at(static_cast<std::size_t>(rank)), rank);
}

// DeepSpeed 0.18.3 reduces copies of what it adds up in float32 (get_gradient_for_reduction), and drops them.
TEST_CASE("estimate/computed_half: ZeRO-1 on bfloat16 without mixed precision steps by each rank's own gradients") {
  JobSpec job = half_job(2);
  job.dtype = DType::bfloat16, job.training.fp16 = false;
  job.training.num_steps = 1, job.training.max_grad_norm = 0;
  const Zero plan = zero(1, 16);
  constexpr double lr = 1;  // so that steps are larger than what is rounded
  const ComputedRun run = compute_run(job, plan, lr);
  for (std::size_t rank = 0; rank < 2; ++rank)
    check_same_peaks(job, plan, run.ranks[rank], static_cast<std::int64_t>(rank));
  // What each rank would come to by itself: the first one's step, and, as SGD is linear, what it and DDP's mean leave.
  test::Weights first_alone;
  CpuRunOptions options{.learning_rate = lr, .alone = 0};
  options.at_end = [&](std::int64_t, Context& ctx, CausalLm& model, ShardingRuntime&) {
    for (const Parameter* parameter : model.parameters())
      first_alone[parameter->name] = test::numbers_of(ctx, parameter->tensor);
  };
  REQUIRE(run_on_cpu(job, Ddp{}, options));
  const ComputedRun mean = compute_run(job, Ddp{}, lr);
  std::size_t of_first = 0, of_second = 0;
  for (const auto& [name, values] : run.weights)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double first = first_alone.at(name)[i], second = 2 * mean.weights.at(name)[i] - first;
      if (std::abs(first - second) < 0.05) continue;
      const double tolerance = std::abs(first - second) / 4;
      const bool is_first = std::abs(values[i] - first) < tolerance;
      const bool is_second = std::abs(values[i] - second) < tolerance;
      CAPTURE(name);
      CHECK(is_first != is_second);
      ++(is_first ? of_first : of_second);
    }
  CHECK(of_first > 10);
  CHECK(of_second > 10);
}

}  // namespace qlp

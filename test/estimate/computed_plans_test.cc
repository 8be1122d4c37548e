// Every plan, on the jobs that people run: what the ranks come to together is what one rank comes to, within what 16
// bits lose.
#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_unsharded;
using test::Tolerance;

constexpr std::int64_t kRanks = 4;
constexpr Tolerance kSixteenBits{.loss = 0.02, .weights = 0.05};

Zero zero(int stage) { return {.stage = stage, .reduce_bucket_size = 5000, .stage3_param_persistence_threshold = 200}; }

std::vector<NamedPlan> plans() {
  return {{"ddp", Ddp{}},
          {"fsdp1-full-shard", Fsdp1{}},
          {"fsdp1-shard-grad-op", Fsdp1{.sharding_strategy = ShardingStrategy::shard_grad_op}},
          {"fsdp1-hybrid-shard", Fsdp1{.sharding_strategy = ShardingStrategy::hybrid_shard}},
          {"fsdp1-hybrid-shard-zero2", Fsdp1{.sharding_strategy = ShardingStrategy::hybrid_shard_zero2}},
          {"fsdp2", Fsdp2{}},
          {"fsdp2-no-reshard", Fsdp2{.reshard_after_forward = false}},
          {"fsdp2-hsdp", Fsdp2{.hybrid = true, .dp_shard_size = 2}},
          {"zero1", zero(1)},
          {"zero2", zero(2)},
          {"zero3", zero(3)}};
}

JobSpec on_ranks(JobSpec job) {
  job.cluster.world_size = kRanks, job.cluster.gpus_per_node = 2;
  job.loading = Loading::automatic;
  job.training.num_steps = 2;
  job.training.optimizer = named_optimizer("sgd");
  return job;
}

void check_every_plan(const JobSpec& job, const Tolerance& tolerance) {
  for (const NamedPlan& plan : plans()) {
    CAPTURE(plan.name);
    const bool checkpoints = job.training.gradient_checkpointing != GradientCheckpointing::none;
    if (checkpoints && plan.name == "zero3") continue;  // which frees parameters before the repetition
    check_equals_unsharded(job, plan.plan, tolerance);
  }
}

}  // namespace

TEST_CASE("estimate/computed_plans: LoRA in bfloat16, with checkpointing") {
  JobSpec job = on_ranks(small_lora_job(small_model(Family::llama)));
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  check_every_plan(job, kSixteenBits);
}

TEST_CASE("estimate/computed_plans: the optimizer that DeepSpeed takes in the place of ZeRO-1's") {
  JobSpec job = on_ranks(small_lora_job(small_model(Family::llama)));
  Zero unfused = zero(1);
  unfused.data_types.grad_accum_dtype = ZeroDType::fp32;
  check_equals_unsharded(job, unfused, kSixteenBits);
}

TEST_CASE("estimate/computed_plans: Muon's products of matrices that FSDP2 has cut, also unevenly") {
  JobSpec job = on_ranks(small_lora_job(small_model(Family::llama)));
  job.training.optimizer = named_optimizer("muon");
  for (const std::int64_t rank : {4, 6}) {
    job.adapter->r = rank;
    check_equals_unsharded(job, Fsdp2{}, kSixteenBits);
  }
}

TEST_CASE("estimate/computed_plans: a full fine-tune of a model with tied tables, in several micro steps") {
  ModelSpec model = small_model(Family::qwen2);
  model.tie_word_embeddings = true;
  JobSpec job = on_ranks(small_job(model));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.training.gradient_accumulation_steps = 2;
  check_every_plan(job, {});
}

TEST_CASE("estimate/computed_plans: Liger's loss, which reads the head from outside") {
  JobSpec job = on_ranks(small_job(small_model(Family::llama)));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.training.loss = Loss::liger;
  check_every_plan(job, {});
  job.model.tie_word_embeddings = true;
  check_every_plan(job, {});
}

TEST_CASE("estimate/computed_plans: DoRA under ZeRO-3, whose layers read the base from outside") {
  JobSpec job = on_ranks(small_lora_job(small_model(Family::llama)));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.adapter->use_dora = true;
  job.loading = Loading::cpu;
  check_equals_unsharded(job, zero(3), {});
}

TEST_CASE("estimate/computed_plans: DoRA under FSDP2, whose first rank alone reads weights and takes their norms") {
  JobSpec job = on_ranks(small_lora_job(small_model(Family::llama)));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.adapter->use_dora = true;
  job.loading = Loading::rank0;
  check_equals_unsharded(job, Fsdp2{}, {});
}

TEST_CASE("estimate/computed_plans: ZeRO-3 with a second copy within each node") {
  JobSpec job = on_ranks(small_job(small_model(Family::llama)));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.training.gradient_accumulation_steps = 2;
  Zero plan = zero(3);
  plan.zero_hpz_partition_size = 2;
  check_equals_unsharded(job, plan, {});
}

// torch before 2.9 gathers from one rank too, where later ones copy.
TEST_CASE("estimate/computed_plans: FSDP2 on one rank") {
  JobSpec job = on_ranks(small_job(small_model(Family::llama)));
  job.cluster.world_size = 1;
  for (const Version torch : {Version{2, 8, 0}, Version{2, 14, 1}}) {
    job.stack.torch = torch;
    check_equals_unsharded(job, Fsdp2{}, kSixteenBits);
    check_equals_unsharded(job, Fsdp2{.reshard_after_forward = false}, kSixteenBits);
  }
}

TEST_CASE("estimate/computed_plans: QLoRA with its base whole, in parts or in floating storage") {
  JobSpec job = on_ranks(small_qlora_job(small_model(Family::llama)));
  check_equals_unsharded(job, Ddp{}, kSixteenBits);
  check_equals_unsharded(job, Fsdp1{}, kSixteenBits);
  check_equals_unsharded(job, Fsdp2{}, kSixteenBits);
  job.stack.transformers = {4, 57, 1};
  CHECK_FALSE(run_on_cpu(job, Fsdp2{}));  // of whose ranks only the first has weights there
  job.loading = Loading::gpu;
  check_equals_unsharded(job, Fsdp2{}, kSixteenBits);
  check_equals_unsharded(job, zero(2), kSixteenBits);
  const JobSpec bytes = on_ranks(small_qlora_job(small_model(Family::llama), DType::uint8));
  check_equals_unsharded(bytes, Ddp{}, kSixteenBits);
  check_equals_unsharded(bytes, Fsdp2{.ignored_params = Fsdp2Ignored::quantized}, kSixteenBits);
}

}  // namespace qlp

// Models and phases beside those of a dense model's training: mixtures of experts, LLM.int8, evaluation, saving.
#include <cmath>

#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_unsharded;
using test::compute_run;
using test::ComputedRun;
using test::loss_of;

constexpr double kLr = 2e-2;

void learns(const JobSpec& job) {
  const ComputedRun run = compute_run(job, Single{}, kLr);
  CHECK(loss_of(run, static_cast<std::size_t>(job.training.num_steps) - 1) < loss_of(run, 0));
  test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
}

/// Saving on the way changes no weight, and takes the memory of the dry run.
void check_checkpoints(const JobSpec& job, const ShardingPlan& plan) {
  JobSpec saving = job;
  const ComputedRun whole = compute_run(job, plan, kLr);
  for (const StateDictType type : {StateDictType::full, StateDictType::sharded}) {
    saving.training.checkpoint = type;
    const ComputedRun run = compute_run(saving, plan, kLr);
    CHECK(test::distance(run.weights, whole.weights) == 0);
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
      test::check_same_peaks(saving, plan, run.ranks[rank], static_cast<std::int64_t>(rank));
  }
}

JobSpec float_job(JobSpec job) {
  job.dtype = DType::float32, job.training.bf16 = false;
  job.training.num_steps = 2;
  job.training.optimizer = named_optimizer("sgd");
  return job;
}

}  // namespace

TEST_CASE("estimate/computed_models: mixtures of experts, whole and in parts") {
  for (const Family family : kMixtures) {
    JobSpec job = float_job(small_job(small_model(family)));
    job.cluster.world_size = 2;
    for (const ShardingPlan& plan :
         std::initializer_list<ShardingPlan>{Ddp{}, Fsdp1{}, Fsdp2{}, Zero{.stage = 2, .reduce_bucket_size = 20000}})
      check_equals_unsharded(job, plan);
  }
}

TEST_CASE("estimate/computed_models: experts that run one by one, as transformers 4 has them") {
  for (const Family family : kMixtures) {
    JobSpec job = float_job(small_job(small_model(family)));
    job.stack.transformers = {4, 57, 1};
    job.model.experts->num_experts = 4, job.model.experts->num_experts_per_tok = 2;  // of which tokens are a multiple
    test::check_same_peaks(job, Single{}, compute_run(job, Single{}, kLr).ranks.front(), 0);
    job.cluster.world_size = 2;
    for (const ShardingPlan& plan : std::initializer_list<ShardingPlan>{
             Ddp{}, Fsdp2{}, Zero{.stage = 3, .reduce_bucket_size = 20000, .stage3_param_persistence_threshold = 200}})
      if (family != Family::gpt_oss || !std::holds_alternative<Zero>(plan))  // whose stacks are refused there
        test::check_equals_one_rank(job, plan, {.replicas = 2, .lr = 0.2});
  }
}

TEST_CASE("estimate/computed_models: adapters of experts learn") {
  for (const Family family : kMixtures) {
    JobSpec job = small_lora_job(small_model(family));
    job.training.num_steps = 4;
    learns(job);
  }
}

TEST_CASE("estimate/computed_models: LLM.int8 learns, near to what the weights themselves come to") {
  for (const std::int64_t hidden : {72, 70}) {  // the second is not what the kernel of integers takes
    ModelSpec model = small_model(Family::qwen2);
    model.hidden_size = hidden;
    JobSpec job = small_lora_job(model);
    job.training.num_steps = 4;
    const double whole = loss_of(compute_run(job, Single{}, kLr), 0);
    job.quantization = QuantizationSpec{.quant_type = QuantType::int8};
    learns(job);
    CHECK(loss_of(compute_run(job, Single{}, kLr), 0) == doctest::Approx(whole).epsilon(0.01));
  }
}

TEST_CASE("estimate/computed_models: trained biases of LLM.int8's layers have gradients, which ranks share") {
  JobSpec job = small_lora_job(small_model(Family::qwen2));
  job.quantization = QuantizationSpec{.quant_type = QuantType::int8};
  job.adapter->bias = AdapterBias::all;
  job.training.num_steps = 4;
  learns(job);
  job = float_job(job);
  job.cluster.world_size = 2;
  check_equals_unsharded(job, Ddp{}, {.loss = 0.01, .weights = 0.01});
}

TEST_CASE("estimate/computed_models: factors of a file are multiplied by, and divided by") {
  JobSpec job = small_lora_job(small_model(Family::granite));
  job.training.num_steps = 1;
  const auto loss = [&] { return loss_of(compute_run(job, Single{}, kLr), 0); };
  const double plain = loss(), even = std::log(static_cast<double>(job.model.vocab_size));
  job.model.factors.attention_multiplier = 2;
  CHECK(loss() != plain);
  job.model.factors.residual_multiplier = 0.5;
  const double damped = loss();
  job.model.factors.embedding_multiplier = 3;
  CHECK(loss() != damped);
  job.model.factors.logits_scaling = 1e6;  // all logits are the same then
  CHECK(loss() == doctest::Approx(even).epsilon(1e-4));
  JobSpec cohere = small_lora_job(small_model(Family::cohere));
  cohere.training.num_steps = 1, cohere.model.factors.logit_scale = 1e-6;
  CHECK(loss_of(compute_run(cohere, Single{}, kLr), 0) == doctest::Approx(even).epsilon(1e-4));
}

TEST_CASE("estimate/computed_models: longrope, with frequencies for short and for long sequences") {
  for (const std::int64_t original : {8, 32}) {
    JobSpec job = small_lora_job(small_model(Family::phi3));
    job.model.rope = RopeKind::longrope, job.model.original_max_position_embeddings = original;
    job.training.num_steps = 4;
    learns(job);
    job.stack = sample_stacks()[3];  // which puts the picked ones in the place of the buffer
    learns(job);
  }
}

TEST_CASE(
    "estimate/computed_models: dynamic frequencies are stretched where sequences are longer than the pretrained") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  const auto loss = [&](std::int64_t positions) {
    job.model.max_position_embeddings = positions;
    const ComputedRun run = compute_run(job, Single{}, kLr);
    test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
    return loss_of(run, 0);
  };
  const double plain = loss(8);
  CHECK(loss(16) == plain);
  job.model.rope_scaling = {.rope_type = RopeStretch::dynamic, .factor = 8};
  CHECK(loss(16) == plain);  // as long as its sequences
  CHECK(loss(8) != plain);
}

TEST_CASE("estimate/computed_models: evaluation and saving follow training") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  job.training.evaluation.emplace();
  job.training.evaluation->prediction_loss_only = false;
  job.training.evaluation->num_samples = 40;
  job.training.saves_model = true;
  for (const ShardingPlan& plan : std::initializer_list<ShardingPlan>{Ddp{}, Fsdp1{}, Fsdp2{}, Zero{.stage = 2}}) {
    const ComputedRun run = compute_run(job, plan, kLr);
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
      test::check_same_peaks(job, plan, run.ranks[rank], static_cast<std::int64_t>(rank));
  }
}

TEST_CASE("estimate/computed_models: a checkpoint between steps changes nothing of them") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  job.training.num_steps = 3;
  Fsdp1 flat;
  flat.use_orig_params = false;
  for (const ShardingPlan& plan :
       std::initializer_list<ShardingPlan>{Ddp{}, Fsdp1{}, flat, Fsdp2{}, Zero{.stage = 2}, Zero{.stage = 3}}) {
    check_checkpoints(job, plan);
  }
}

TEST_CASE("estimate/computed_models: ranks without a trained element of a unit join its checkpoint") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.adapter->all_linear = false, job.adapter->target_modules = {"q_proj"};
  job.adapter->dtype = DType::bfloat16;
  job.cluster.world_size = 4;
  job.stack.bitsandbytes = {0, 48, 0};  // newer ones stop there
  const Fsdp1 layers{.use_orig_params = true, .auto_wrap_policy = WrapPolicy::transformer_based_wrap};
  for (const char* optimizer : {"adamw_torch", "sgd", "adafactor", "schedule_free_adamw", "lion_32bit"}) {
    CAPTURE(std::string(optimizer));
    job.training.optimizer = named_optimizer(optimizer);
    check_checkpoints(job, layers);
  }
}

TEST_CASE("estimate/computed_models: stages of a pipeline come to what one rank does") {
  constexpr double kClippedLr = 0.2;
  JobSpec job = float_job(small_job(small_model(Family::llama)));
  job.training.max_grad_norm = 0.5;
  job.training.num_steps = 3, job.training.gradient_accumulation_steps = 4;
  const ComputedRun whole = compute_run(job, Single{}, kClippedLr);
  JobSpec staged = job;
  staged.cluster.world_size = staged.cluster.mesh.pp = 2;
  auto stages = run_on_cpu(staged, Single{}, {.learning_rate = kClippedLr});
  REQUIRE(stages);
  REQUIRE(stages->size() == 2);
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(stages->back().steps[step].loss == doctest::Approx(loss_of(whole, step)).epsilon(1e-5));
    for (const DryRun& stage : *stages)
      CHECK(stage.steps[step].grad_norm == doctest::Approx(whole.ranks.front().steps[step].grad_norm).epsilon(1e-4));
  }
  CHECK(loss_of(whole, 2) < loss_of(whole, 0));
  for (std::size_t stage = 0; stage < 2; ++stage)
    test::check_same_peaks(staged, Single{}, (*stages)[stage], static_cast<std::int64_t>(stage));
}

TEST_CASE("estimate/computed_models: stages beside data parallelism come to what whole models do") {
  constexpr double kClippedLr = 0.2;
  JobSpec job = float_job(small_job(small_model(Family::llama)));
  job.training.max_grad_norm = 0.5;
  job.training.num_steps = 3, job.training.gradient_accumulation_steps = 3;
  job.cluster.world_size = 2;
  JobSpec staged = job;
  staged.cluster.world_size = 4, staged.cluster.mesh.pp = 2;
  for (const ShardingPlan& plan :
       std::initializer_list<ShardingPlan>{Ddp{}, Fsdp2{}, Fsdp2{.reshard_after_forward = false}}) {
    const ComputedRun whole = compute_run(job, plan, kClippedLr);
    auto stages = run_on_cpu(staged, plan, {.learning_rate = kClippedLr});
    REQUIRE(stages);
    REQUIRE(stages->size() == 4);
    for (std::size_t step = 0; step < 3; ++step) {
      const double loss = ((*stages)[2].steps[step].loss + (*stages)[3].steps[step].loss) / 2;
      CHECK(loss == doctest::Approx(loss_of(whole, step)).epsilon(1e-5));
      for (const DryRun& rank : *stages)
        CHECK(rank.steps[step].grad_norm == doctest::Approx(whole.ranks.front().steps[step].grad_norm).epsilon(1e-4));
    }
    CHECK(loss_of(whole, 2) < loss_of(whole, 0));
    for (std::size_t rank = 0; rank < 4; ++rank)
      test::check_same_peaks(staged, plan, (*stages)[rank], static_cast<std::int64_t>(rank));
  }
}

TEST_CASE("estimate/computed_models: float16, whose gradients are whole or in parts") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  job.training.bf16 = false, job.training.fp16 = true, job.dtype = DType::float16;
  job.training.num_steps = 2, job.training.optimizer = named_optimizer("sgd");
  for (const ShardingPlan& plan : std::initializer_list<ShardingPlan>{Ddp{}, Fsdp1{}})
    check_equals_unsharded(job, plan, {.loss = 0.02, .weights = 0.05});
  // FSDP2 hands the loss on in float16, in which its gradient, the scale, is too large at first: all ranks skip steps.
  job.training.num_steps = 8;
  const ComputedRun run = compute_run(job, Fsdp2{}, kLr);
  const auto norm = [&](std::size_t rank, std::size_t step) { return run.ranks[rank].steps[step].grad_norm; };
  CHECK_FALSE(std::isfinite(norm(0, 0)));
  CHECK(std::isfinite(norm(0, 7)));
  for (std::size_t step = 0; step < 8; ++step) CHECK(std::isfinite(norm(0, step)) == std::isfinite(norm(1, step)));
}

}  // namespace qlp

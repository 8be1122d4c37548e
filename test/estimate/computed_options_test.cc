// Options that change how a step runs, but not what it comes to.
#include <cmath>

#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::compute_run;
using test::ComputedRun;
using test::distance;
using test::loss_of;

constexpr double kLr = 2e-2;

JobSpec float_lora_job(const ModelSpec& model) {
  JobSpec job = small_lora_job(model);
  job.dtype = DType::float32;
  job.training.bf16 = false;
  job.training.num_steps = 3;
  job.training.optimizer = named_optimizer("sgd");  // which does not make much of small differences
  return job;
}

void check_same(const JobSpec& job, const JobSpec& other, double tolerance = 1e-5) {
  const ComputedRun a = compute_run(job, Single{}, kLr), b = compute_run(other, Single{}, kLr);
  for (std::size_t step = 0; step < 3; ++step)
    CHECK(loss_of(a, step) == doctest::Approx(loss_of(b, step)).epsilon(tolerance));
  CHECK(distance(a.weights, b.weights) < 20 * tolerance);
}

}  // namespace

TEST_CASE("estimate/computed_options: checkpointing, with dropout") {
  JobSpec job = float_lora_job(small_model(Family::llama));
  job.adapter->lora_dropout = 0.2;
  JobSpec other = job;
  for (const auto kind : {GradientCheckpointing::reentrant, GradientCheckpointing::nonreentrant}) {
    other.training.gradient_checkpointing = kind;
    check_same(job, other);
  }
}

TEST_CASE("estimate/computed_options: kernels of attention and of the loss") {
  for (const Family family : {Family::llama, Family::qwen2, Family::mistral}) {
    const JobSpec job = float_lora_job(small_model(family));
    JobSpec eager = job, liger = job;
    eager.training.attention = Attention::eager;
    check_same(job, eager);
    liger.training.loss = Loss::liger;
    check_same(job, liger);
  }
}

TEST_CASE("estimate/computed_options: micro steps add up, with the memory of a dry run") {
  JobSpec job = float_lora_job(small_model(Family::llama));
  job.training.gradient_accumulation_steps = 3;
  const ComputedRun run = compute_run(job, Single{}, kLr);
  test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
  // A mean of micro steps' means is the mean over all of their tokens, as all have as many.
  JobSpec older = job;
  older.stack = sample_stacks().front();
  CHECK(loss_of(compute_run(older, Single{}, kLr), 0) == doctest::Approx(loss_of(run, 0)).epsilon(1e-5));
}

TEST_CASE("estimate/computed_options: the code of every version of the libraries comes to the same") {
  for (const Family family : {Family::llama, Family::mistral}) {
    const JobSpec job = float_lora_job(small_model(family));
    for (const StackVersions& stack : sample_stacks()) {
      JobSpec other = job;
      other.stack = stack;
      check_same(job, other);
    }
  }
}

TEST_CASE("estimate/computed_options: 4-bit weights of either type, with any storage, learn") {
  for (const QuantType type : {QuantType::nf4, QuantType::fp4})
    for (const bool double_quant : {false, true}) {
      JobSpec job = small_qlora_job(small_model(Family::llama), DType::uint8, double_quant);
      job.quantization->quant_type = type;
      job.training.num_steps = 8;
      const ComputedRun run = compute_run(job, Single{}, kLr);
      for (std::size_t step = 0; step < 8; ++step) CHECK(std::isfinite(loss_of(run, step)));
      if (type == QuantType::nf4) CHECK(loss_of(run, 7) < loss_of(run, 0));
      test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
      JobSpec other = job;
      other.quantization->quant_storage = DType::bfloat16;
      CHECK(loss_of(compute_run(other, Single{}, kLr), 2) == doctest::Approx(loss_of(run, 2)).epsilon(1e-3));
    }
}

TEST_CASE("estimate/computed_options: DoRA, trained copies of the tables, float16, and optimizers") {
  const auto learns = [](const JobSpec& job) {
    const ComputedRun run = compute_run(job, Single{}, kLr);
    CHECK(loss_of(run, static_cast<std::size_t>(job.training.num_steps) - 1) < loss_of(run, 0));
    test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
  };
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.training.num_steps = 4;
  JobSpec dora = job;
  dora.adapter->use_dora = true;
  learns(dora);
  dora.adapter->lora_dropout = 0.1;
  learns(dora);
  JobSpec saved = job;
  saved.adapter->modules_to_save = {"lm_head", "embed_tokens"};
  learns(saved);
  JobSpec half = job;
  half.dtype = DType::float16, half.training.bf16 = false, half.training.fp16 = true;
  learns(half);
  for (const char* name : {"adamw_torch_fused", "adamw_torch_forloop",
                           "adamw_bnb_8bit",    "sgd",
                           "adagrad",           "rmsprop",
                           "adafactor",         "schedule_free_adamw",
                           "schedule_free_sgd", "muon",
                           "stable_adamw",      "grokadamw",
                           "paged_adamw_32bit", "paged_adamw_8bit",
                           "lion_32bit",        "lion_8bit",
                           "paged_lion_32bit",  "rmsprop_bnb",
                           "rmsprop_bnb_8bit",  "ademamix",
                           "ademamix_8bit",     "paged_ademamix_8bit"}) {
    JobSpec other = job;
    other.training.optimizer = named_optimizer(name);
    learns(other);
  }
  for (const char* name : {"lomo", "adalomo"}) {  // of all parameters, within the backward pass
    JobSpec full = small_job(small_model(Family::llama));
    full.training.num_steps = 4;
    full.training.optimizer = named_optimizer(name);
    learns(full);
  }
}

// Their gradients are estimate/model_gradients' matter.
TEST_CASE("estimate/computed_options: biases, and what lies beside the embedding, as predicted") {
  const auto check = [](const JobSpec& job) {
    const ComputedRun run = compute_run(job, Single{}, kLr);
    CHECK(std::isfinite(loss_of(run, 1)));
    test::check_same_peaks(job, Single{}, run.ranks.front(), 0);
  };
  JobSpec biased = small_lora_job(small_model(Family::qwen2));
  biased.adapter->bias = AdapterBias::all, biased.adapter->lora_bias = true;
  check(biased);
  JobSpec table = small_lora_job(small_model(Family::llama));
  table.adapter->all_linear = false, table.adapter->target_modules = {"v_proj", "down_proj", "embed_tokens", "lm_head"};
  check(table);
  for (const bool tied : {false, true}) {
    JobSpec tokens = small_lora_job(small_model(Family::llama));
    tokens.model.tie_word_embeddings = tied;
    tokens.adapter->trainable_token_indices = {0, 7, 130};
    check(tokens);
  }
}

}  // namespace qlp

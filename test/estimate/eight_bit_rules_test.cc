#include "estimate/eight_bit_rules.h"

#include <algorithm>
#include <string_view>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

using namespace qlp;

namespace {

JobSpec small_int8_job() {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.quantization = QuantizationSpec{.quant_type = QuantType::int8, .quant_storage = DType::int8};
  return job;
}

/// Llama 3.2 1B cut to two layers, 256 tokens, LoRA r 8 on all linear layers, as torch 2.8.0, transformers 4.57.1,
/// peft 0.18.0 and bitsandbytes 0.50.2 ran it on a null GPU.
JobSpec two_layers() {
  JobSpec job;
  job.model = llama_1b(2);
  job.model.tie_word_embeddings = true, job.model.checkpoint_dtype = DType::bfloat16;
  job.quantization = QuantizationSpec{.quant_type = QuantType::int8, .quant_storage = DType::int8};
  job.adapter = small_lora();
  job.adapter->r = 8;
  job.training.seq_len = 256;
  job.training.bf16 = true;
  job.cluster.gpu.capacity = Bytes{std::uint64_t{80} << 30};
  job.stack = kOlder;
  job.plans = {{"single", Single{}}};
  return job;
}

std::string refused(const JobSpec& job, std::string_view plan) {
  const auto refusals = check_eight_bit(job, find_plan(plan)->plan);
  return refusals.empty() ? "" : refusals.front().code;
}

}  // namespace

TEST_CASE("estimate/eight_bit_rules: FSDP cuts no integers, and they are not trained by themselves") {
  const JobSpec job = small_int8_job();
  CHECK(refused(job, "single").empty());
  CHECK(refused(job, "ddp").empty());
  CHECK(refused(job, "fsdp1-full-shard") == "int8-sharded");
  CHECK(refused(job, "fsdp2") == "int8-sharded");
  CHECK(refused(job, "zero2").empty());
  CHECK(refused(job, "zero3").empty());
  JobSpec full = job;
  full.adapter.reset();
  CHECK(refused(full, "single") == "int8-without-adapter");
}

TEST_CASE("estimate/eight_bit_rules: inputs are kept until the graph goes, as in the real libraries") {
  const Report report = estimate(two_layers());
  REQUIRE_MESSAGE(report.plans.front().applicable(), report.plans.front().reason());
  const auto& phases = report.plans.front().ranks.front().phases;
  const auto phase = [&](std::string_view name) { return *std::ranges::find(phases, name, &PhaseReport::name); };
  struct Row {
    const char* phase;
    std::uint64_t peak, held;
  };
  const Row rows[] = {{"load", 703774720, 647180416},
                      {"adapter", 649998464, 649998464},
                      {"micro1.forward", 1040890064, 842741964},
                      {"micro1.backward", 1105404104, 669855888},
                      {"micro2.forward", 1055045848, 856897748},
                      {"step2.zero_grad", 675491988, 672673940}};
  for (const Row& row : rows) {
    CAPTURE(row.phase);
    CHECK(phase(row.phase).peak.requested.count() == row.peak);
    CHECK(phase(row.phase).held.requested.count() == row.held);
  }
  CHECK(phase("micro2.backward").peak.requested.count() == 1119559888);
}

// Three layers, 2 x 256 tokens, two steps.
TEST_CASE("estimate/eight_bit_rules: DoRA makes float32 of a weight to adapt it") {
  JobSpec job = two_layers();
  job.model.num_hidden_layers = 3;
  job.adapter->use_dora = true;
  job.training.micro_batch_size = 2, job.training.num_steps = 2;
  CHECK(test::figures(job, Single{}) == test::Figures{2053191912, 738668692});
  job.stack.peft = {0, 13, 2};
  CHECK(refused(job, "single") == "int8-dora");
  job.stack.peft = {0, 18, 0};
  CHECK(refused(job, "zero2").empty());
  CHECK(refused(job, "zero3") == "int8-dora-zero3");
}

// Layers of 1024 x 4096 and 16384 words on rank 0 of 4, DeepSpeed 0.18.3.
TEST_CASE("estimate/eight_bit_rules: ZeRO-3 cuts a copy of weights that their layers go on reading whole") {
  JobSpec job = two_layers();
  ModelSpec& model = job.model;
  model.hidden_size = 1024, model.intermediate_size = 4096, model.vocab_size = 16384, model.num_attention_heads = 16;
  job.adapter->r = 16;
  job.training.seq_len = 512, job.training.num_steps = 3;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.cluster.world_size = 4;
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.reduce_bucket_size = 2'000'000;
  job.plans = {{"zero3", plan}};
  const Report report = estimate(job);
  REQUIRE_MESSAGE(report.plans.front().applicable(), report.plans.front().reason());
  const RankReport& rank = report.plans.front().ranks.front();
  const auto& step = *std::ranges::find(rank.phases, "micro3.forward", &PhaseReport::name);
  CHECK(step.peak.requested.count() == 220'656'473);
  CHECK(step.held.requested.count() == 144'638'825);
  CHECK(rank.persistent.requested.count() == 73'186'121);
}

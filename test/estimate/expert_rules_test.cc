#include "estimate/expert_rules.h"

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/rank_report.h"
#include "plan/job_spec.h"

using namespace qlp;

namespace {

/// One layer of Mixtral, with 4 experts; 512 tokens.
JobSpec one_layer() {
  JobSpec job;
  ModelSpec& m = job.model;
  m.family = Family::mixtral;
  m.hidden_size = 1024, m.intermediate_size = 1536, m.num_hidden_layers = 1, m.vocab_size = 32000;
  m.num_attention_heads = 16, m.num_key_value_heads = 4, m.head_dim = 64, m.max_position_embeddings = 32768;
  m.experts = ExpertSpec{.num_experts = 4, .num_experts_per_tok = 2, .intermediate_size = 1536};
  job.training.seq_len = 512;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.cluster.gpu.capacity = Bytes{84'974'239'744};
  return job;
}

std::uint64_t peak(const JobSpec& job) {
  const auto run = dry_run(job, Single{}, 0);
  REQUIRE(run);
  return rank_report(*run, 0, false).training_peak.figures.requested.count();
}

}  // namespace

// Requested bytes of the real libraries: torch 2.14.1, transformers 5.24.0, PEFT 0.21.2 on PyTorch's allocator.
TEST_CASE("estimate/expert_rules: full fine-tune in bfloat16, as the libraries run it") {
  CHECK(peak(one_layer()) == 887423246);
}

// As above: files that hold stacks are read as they are, others matrix by matrix and then put together.
TEST_CASE("estimate/expert_rules: experts are stacked while they are loaded, unless the files hold stacks") {
  const auto load_peak = [](bool stacked) {
    JobSpec job = one_layer();
    job.model.stacked_experts = stacked;
    const auto run = dry_run(job, Single{}, 0);
    REQUIRE(run);
    const RankReport report = rank_report(*run, 0, false);
    return report.phases.front().peak.requested.count() - report.phases.front().held.requested.count();
  };
  CHECK(load_peak(true) == 0);
  CHECK(load_peak(false) > 0);
}

TEST_CASE("estimate/expert_rules: LoRA on every linear layer folds its updates into copies of the experts") {
  JobSpec job = one_layer();
  job.training.bf16 = true;
  job.training.num_steps = 1;
  job.adapter = AdapterSpec{.r = 8, .all_linear = true};
  CHECK(peak(job) == 448434684);
  job.adapter->lora_dropout = 0.1;
  const auto refused = dry_run(job, Single{}, 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "expert-dropout");
}

TEST_CASE("estimate/expert_rules: gate and up are one parameter, adapted together or not at all") {
  JobSpec job = one_layer();
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "w1"}};
  const auto refused = dry_run(job, Single{}, 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "half-of-gate-up");
  job.adapter->target_modules = {"q_proj", "w1", "w3"};
  CHECK(dry_run(job, Single{}, 0));
}

TEST_CASE("estimate/expert_rules: stacks of experts that were not looked at are refused") {
  JobSpec job = one_layer();
  job.stack.transformers = {5, 10, 0};
  const auto refused = dry_run(job, Single{}, 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "experts-by-loop");
}

namespace {

/// Two layers with 8 experts each on transformers 4, which runs them one by one.
JobSpec listed(Family family) {
  JobSpec job = one_layer();
  job.model.family = family, job.model.num_hidden_layers = 2;
  job.model.experts->num_experts = 8;
  job.training.bf16 = true;
  job.training.num_steps = 2;
  job.stack = {.torch = {2, 8, 0}, .transformers = {4, 57, 1}, .peft = {0, 18, 0}};
  return job;
}

std::uint64_t backward_peak(const JobSpec& job, const ShardingPlan& plan = Single{}) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  for (const PhaseReport& phase : rank_report(*run, 0, false).phases)
    if (phase.name == "micro2.backward") return phase.peak.requested.count();
  return 0;
}

}  // namespace

// Requested bytes of the real libraries on a null GPU, where the routers' choice was replaced by an even one: torch
// 2.8.0, transformers 4.57.1, PEFT 0.18.0, bitsandbytes 0.50.2.
TEST_CASE("estimate/expert_rules: experts that run one by one, as the libraries run them") {
  JobSpec job = listed(Family::mixtral);
  CHECK(backward_peak(job) == 1188475038);
  job.adapter = AdapterSpec{.r = 8, .lora_dropout = 0.05, .all_linear = true};
  CHECK(backward_peak(job) == 599232464);
  job.quantization = QuantizationSpec{.double_quant = true, .quant_storage = DType::bfloat16};
  CHECK(backward_peak(job) == 479443264);
}

TEST_CASE("estimate/expert_rules: what experts keep that run one by one does not hang on how many share it") {
  JobSpec job = listed(Family::qwen3_moe);
  job.model.experts->intermediate_size = 192;
  const auto held = [](const JobSpec& j) {
    const auto run = dry_run(j, Single{}, 0);
    REQUIRE(run);
    const RankReport report = rank_report(*run, 0, true);
    for (const PhaseReport& phase : report.phases)
      if (phase.name == "micro1.forward") return phase.categories[static_cast<std::size_t>(Category::activations)];
    return Bytes{};
  };
  const Bytes eight = held(job);
  job.model.experts->num_experts = 16;
  const Bytes sixteen = held(job);
  CHECK(sixteen.count() > eight.count());  // wider logits
  CHECK(sixteen.count() < eight.count() + 512 * 16 * 16 * 2);
}

TEST_CASE("estimate/expert_rules: experts without tokens, and Liger's, are refused on transformers 4") {
  const auto code = [](const JobSpec& job) {
    const auto run = dry_run(job, Single{}, 0);
    return run ? std::string() : run.error().front().code;
  };
  JobSpec job = listed(Family::mixtral);
  job.training.seq_len = 3;
  CHECK(code(job) == "experts-without-tokens");
  job.training.seq_len = 4;
  CHECK(code(job).empty());
  job.training.loss = Loss::liger;
  CHECK(code(job) == "loss-liger-family");
}

TEST_CASE("estimate/expert_rules: adapters on listed experts have dropout and DoRA as those of other layers do") {
  JobSpec job = listed(Family::mixtral);
  job.adapter = AdapterSpec{.r = 8, .lora_dropout = 0.1, .use_dora = true, .target_modules = {"w1"}};
  CHECK(dry_run(job, Fsdp2{}, 0));
}

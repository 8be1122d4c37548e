// transformers before 4.53, as the libraries of 4.39.3, 4.43.3 and 4.48.1 ran on a null GPU, and 4.45.2 on an A100.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "config/file_reader.h"
#include "config/job_reader.h"
#include "estimate/dry_run.h"
#include "estimate/requested_peak.h"
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

std::uint64_t most_allocated(const DryRun& dry) {
  std::uint64_t most = 0;
  for (const Phase& phase : dry.timeline.phases()) most = std::max(most, phase.allocated.bytes);
  return most;
}

}  // namespace

// Gemma 2B of three layers under transformers 4.48.3, 2 x 333 tokens, two steps.
TEST_CASE("estimate/old_stacks: Gemma before the masks of all models were made in one place") {
  JobSpec job = small_job({});
  ModelSpec& model = job.model;
  model.family = Family::gemma, model.tie_word_embeddings = true, model.checkpoint_dtype = DType::bfloat16;
  model.hidden_size = 2048, model.intermediate_size = 16384, model.num_hidden_layers = 3, model.vocab_size = 256000;
  model.num_attention_heads = 8, model.num_key_value_heads = 1, model.head_dim = 256;
  model.max_position_embeddings = 8192;
  job.adapter = AdapterSpec{.r = 8, .lora_dropout = 0.05, .all_linear = true};
  job.training.micro_batch_size = 2, job.training.seq_len = 333, job.training.num_steps = 2;
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  job.loading = Loading::gpu;
  job.stack = k4481, job.stack.transformers = {4, 48, 3};
  CHECK(test::figures(job, Single{}) == test::Figures{4567109320, 1745859084});
}

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

// Four layers of width 512, 512 tokens; what differs between the families is the norm, the factors, who is turned and
// how.
TEST_CASE("estimate/old_stacks: Granite, Cohere and GLM in 4.48.1 peak where the libraries did") {
  struct Row {
    Family family;
    std::int64_t kv_heads;
    std::uint64_t full, eager_lora;
  };
  for (const Row& row : {Row{Family::granite, 4, 241'818'758, 88'490'136},
                         {Family::cohere, 4, 240'653'446, 89'503'896},
                         {Family::glm, 2, 249'209'926, 90'454'104}}) {
    CAPTURE(static_cast<int>(row.family));
    ModelSpec model;
    model.family = row.family;
    model.hidden_size = 512, model.intermediate_size = 1024, model.num_hidden_layers = 4, model.vocab_size = 4096;
    model.num_attention_heads = 8, model.num_key_value_heads = row.kv_heads, model.head_dim = 64;
    model.max_position_embeddings = 4096;
    model.tie_word_embeddings = row.family != Family::glm;
    model.qkv_bias = row.family != Family::cohere;
    model.attention_bias = model.mlp_bias = row.family == Family::granite;
    if (row.family == Family::glm) model.partial_rotary_factor = 0.5;
    JobSpec job = small_job(model);
    job.stack = k4481;
    job.loading = Loading::gpu;
    job.training.optimizer = named_optimizer("adamw_torch");
    job.training.num_steps = 3;
    job.training.seq_len = 512, job.training.micro_batch_size = 2, job.training.bf16 = false;
    CHECK(test::requested_peak(job) == row.full);
    job.training.micro_batch_size = 1, job.training.bf16 = true, job.training.attention = Attention::eager;
    job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
    job.adapter = AdapterSpec{.r = 16, .all_linear = true};
    CHECK(test::requested_peak(job) == row.eager_lora);
  }
}

// github.com/foundation-model-stack/fms-acceleration, scripts/benchmarks/refs/a100_80gb_granite.csv: rank 0 on A100s.
// What is left of 1e-5 is the attention mask of the batch.
TEST_CASE("estimate/old_stacks: PowerLM 3B peaks where it did on an A100") {
  struct Row {
    const char* what;
    std::int64_t gpus, batch;
    std::uint64_t measured;
  };
  const std::string lora =
      "adapter: {type: lora, r: 16, lora_dropout: 0.1, target_modules: [q_proj, k_proj, v_proj, o_proj]}\n";
  const std::string nf4 = "quantization: {quant_type: nf4, double_quant: true, quant_storage: bfloat16}\n";
  for (const Row& row : {Row{"full", 1, 4, 35'134'836'736}, Row{"full", 1, 8, 47'059'390'976},
                         Row{"lora", 1, 4, 20'169'870'848}, Row{"qlora", 2, 2, 7'826'759'168}}) {
    CAPTURE(row.what);
    const std::string_view what = row.what;
    const auto document = read_job(
        "schema: 1\nmodel: {name: powerlm-3b, dtype: bfloat16, loading: " +
            std::string(row.gpus == 1 ? "gpu" : "rank0") + "}\n" + (what == "full" ? "" : lora) +
            (what == "qlora" ? nf4 : "") + "training: {seq_len: 4096, micro_batch_size: " + std::to_string(row.batch) +
            ", gradient_checkpointing: {use_reentrant: true}, optimizer: adamw_torch, max_grad_norm: 1.0,\n"
            "  attn_implementation: flash_attention_2, mixed_precision: " +
            (what == "qlora" ? "bf16" : "'no'") +
            "}\ncluster: {gpu: A100 SXM4 80GB, world_size: " + std::to_string(row.gpus) +
            "}\nstack: {torch: 2.4.1, transformers: 4.45.2, peft: 0.12.0, accelerate: 0.34.2, bitsandbytes: 0.43.3}\n",
        "a.yaml", DiskFiles());
    REQUIRE(document);
    const DryRun dry = row.gpus == 1 ? run(document->job) : run(document->job, Fsdp1{});
    const auto peak = static_cast<double>(most_allocated(dry));
    const auto measured = static_cast<double>(row.measured);
    CHECK(std::abs(peak - measured) < measured * 1e-5);
  }
}

}  // namespace qlp

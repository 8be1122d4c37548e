// Mixtures of experts as the real libraries ran them on a null GPU: torch 2.14.1, transformers 5.24.0, peft 0.21.2, and
// torch 2.8.0, transformers 4.57.1, peft 0.18.0, whose routers were made to choose evenly; bitsandbytes 0.50.2. Three
// layers of 8 experts, of which a token takes 4, and a vocabulary of 4096; three steps of adamw_torch (two on the older
// stack); peaks of requested bytes from the first forward pass on.
#include <cstdint>

#include <doctest/doctest.h>

#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

ModelSpec model(Family family) {
  ModelSpec spec;
  spec.family = family;
  spec.num_hidden_layers = 3, spec.vocab_size = 4096, spec.max_position_embeddings = 8192;
  spec.checkpoint_dtype = DType::bfloat16;
  spec.experts = ExpertSpec{.num_experts = 8, .num_experts_per_tok = 4, .norm_topk_prob = false};
  spec.hidden_size = 1024, spec.head_dim = 128, spec.num_attention_heads = spec.num_key_value_heads = 8;
  if (family == Family::qwen2_moe) {
    spec.intermediate_size = spec.experts->shared_expert_intermediate_size = 2816;
    spec.experts->intermediate_size = 704, spec.qkv_bias = true;
  } else if (family == Family::olmoe) {
    spec.intermediate_size = spec.experts->intermediate_size = 1024;
  } else {  // gpt-oss
    spec.hidden_size = spec.intermediate_size = spec.experts->intermediate_size = 1440;
    spec.head_dim = 64, spec.num_attention_heads = 32, spec.qkv_bias = spec.attention_bias = true;
    spec.sliding_window = 128, spec.sliding_window_pattern = 2, spec.experts->norm_topk_prob = true;
  }
  spec.stacked_experts = true;
  return spec;
}

enum class Method : std::uint8_t { full, lora, qlora };

struct Run {
  Family family;
  Method method = Method::full;
  std::int64_t micro_batch_size = 1, seq_len = 384;
  bool bf16 = false, checkpoints = false, eager = false, kbit = false;
  std::uint64_t peak = 0;
};

JobSpec job_of(const Run& run) {
  JobSpec job = small_job(model(run.family));
  job.training.attention = run.eager || run.family == Family::gpt_oss ? Attention::eager : Attention::sdpa;
  job.training.bf16 = run.bf16;
  job.training.micro_batch_size = run.micro_batch_size, job.training.seq_len = run.seq_len;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.training.num_steps = 3;
  job.loading = Loading::gpu;
  if (run.checkpoints) job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  if (run.method != Method::full)
    job.adapter = AdapterSpec{.r = 16, .lora_alpha = 32, .lora_dropout = 0.05, .all_linear = true};
  if (run.method == Method::qlora)
    job.quantization = QuantizationSpec{
        .double_quant = true, .quant_storage = run.kbit ? DType::uint8 : DType::bfloat16, .prepare_kbit = run.kbit};
  job.stack = kNewer;
  return job;
}

}  // namespace

TEST_CASE("estimate/mixture_runs: peaks of training are those of the libraries") {
  using enum Method;
  constexpr Family kQwen = Family::qwen2_moe, kOss = Family::gpt_oss;
  for (const Run& run :
       {Run{.family = kQwen, .micro_batch_size = 2, .seq_len = 768, .checkpoints = true, .peak = 1005730318},
        Run{.family = kQwen, .method = lora, .seq_len = 768, .bf16 = true, .peak = 473685860},
        Run{.family = kQwen, .method = lora, .eager = true, .peak = 391396796},
        Run{.family = kQwen, .method = qlora, .micro_batch_size = 2, .bf16 = true, .peak = 416320704},
        Run{.family = kOss, .micro_batch_size = 2, .peak = 1850545550},
        Run{.family = kOss, .micro_batch_size = 2, .checkpoints = true, .peak = 1850545550},
        Run{.family = kOss, .method = lora, .bf16 = true, .peak = 581356800},
        Run{.family = Family::olmoe, .micro_batch_size = 2, .seq_len = 768, .peak = 1081930434},
        Run{.family = kOss,
        .method = lora,
        .micro_batch_size = 2,
        .bf16 = true,
        .checkpoints = true,
        .peak = 563394252},
        Run{.family = kOss,
        .method = qlora,
        .micro_batch_size = 2,
        .bf16 = true,
        .checkpoints = true,
        .kbit = true,
        .peak = 1002711748}}) {
    CAPTURE(static_cast<int>(run.family));
    CAPTURE(run.peak);
    CHECK(test::requested_peak(job_of(run)) == run.peak);
  }
}

TEST_CASE("estimate/mixture_runs: experts that run one by one, as the libraries run them") {
  using enum Method;
  constexpr Family kQwen = Family::qwen2_moe, kOlmoe = Family::olmoe, kOss = Family::gpt_oss;
  for (const Run& run : {Run{.family = kQwen, .micro_batch_size = 2, .seq_len = 768, .peak = 1143134310},
                         Run{.family = kQwen, .method = lora, .eager = true, .peak = 495542624},
                         Run{.family = kOlmoe, .method = lora, .seq_len = 768, .bf16 = true, .peak = 557962856},
                         Run{.family = kOlmoe, .method = lora, .eager = true, .peak = 457639712},
                         Run{.family = kOss, .micro_batch_size = 2, .seq_len = 768, .peak = 2237858350},
                         // Less the attention mask of the batch, which that run had: 852056600.
                         Run{.family = kOss, .method = lora, .seq_len = 768, .bf16 = true, .peak = 852050456}}) {
    CAPTURE(static_cast<int>(run.family));
    CAPTURE(run.peak);
    JobSpec job = job_of(run);
    job.training.num_steps = 2;
    job.stack = kOlder;
    CHECK(test::requested_peak(job) == run.peak);
  }
}

// Of one layer with the widths of gpt-oss-20b, loaded with Mxfp4Config(dequantize=True) by transformers 4.57.1.
TEST_CASE("estimate/mixture_runs: MXFP4 is dequantized as it is read, as the libraries do it") {
  JobSpec job = job_of({.family = Family::gpt_oss, .method = Method::lora});
  ModelSpec& spec = job.model;
  spec.num_hidden_layers = 1, spec.hidden_size = spec.intermediate_size = 2880, spec.num_attention_heads = 64;
  spec.experts->num_experts = 32, spec.experts->intermediate_size = 2880;
  spec.mxfp4_experts = true;
  job.stack = kOlder;
  const auto run = dry_run(job, Single{}, 0);
  REQUIRE(run);
  CHECK(run->timeline.phases().front().requested.bytes == 6766208672);
}

}  // namespace qlp

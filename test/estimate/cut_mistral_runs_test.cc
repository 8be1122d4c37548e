// Adapters beside the embedding, and torch's Adagrad, on plans that cut parameters, as the real libraries ran them on a
// null GPU: Mistral cut to two layers of 512, 64 tokens, four ranks, bf16, three steps; torch 2.8.0, transformers
// 4.57.1, peft 0.18.0, accelerate 1.15.0, DeepSpeed 0.18.3; torch 2.14.1, transformers 5.24.0, peft 0.21.2.
#include <utility>

#include <doctest/doctest.h>

#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

using test::Figures;
using test::figures;

JobSpec cut_mistral(const StackVersions& stack, const char* optimizer) {
  JobSpec job = small_job({});
  job.model.family = Family::mistral;
  job.model.hidden_size = 512, job.model.intermediate_size = 1024, job.model.num_hidden_layers = 2;
  job.model.vocab_size = 4096, job.model.num_attention_heads = 8, job.model.num_key_value_heads = 4;
  job.model.head_dim = 64, job.model.max_position_embeddings = 32768;
  job.model.checkpoint_dtype = DType::bfloat16;
  job.training.seq_len = 64, job.training.num_steps = 3;
  job.training.optimizer = named_optimizer(optimizer);
  job.loading = Loading::gpu;
  job.cluster.world_size = 4;
  job.stack = stack;
  return job;
}

JobSpec adapted(JobSpec job, AdapterSpec adapter) {
  adapter.r = 8, adapter.all_linear = adapter.target_modules.empty();
  job.adapter = std::move(adapter);
  return job;
}

const Zero kZero3{.stage = 3, .reduce_bucket_size = 500'000'000, .stage3_prefetch_bucket_size = 50'000'000};

}  // namespace

TEST_CASE("estimate/cut_mistral_runs: what is trained beside the embedding lies in FSDP1's root") {
  const AdapterSpec matrices{.target_modules = {"q_proj", "v_proj", "embed_tokens"}, .dtype = DType::bfloat16};
  const AdapterSpec rows{
      .target_modules = {"q_proj", "v_proj"}, .trainable_token_indices = {1, 5, 9}, .dtype = DType::bfloat16};
  CHECK(figures(adapted(cut_mistral(kOlder, "adamw_torch"), matrices), Fsdp1{}) == Figures{49136228, 27977816});
  CHECK(figures(adapted(cut_mistral(kNewer, "adamw_torch"), matrices), Fsdp1{}) == Figures{49136288, 27977876});
  CHECK(figures(adapted(cut_mistral(kOlder, "adamw_torch"), rows), Fsdp1{}) == Figures{48892004, 27910232});
  JobSpec tied = adapted(cut_mistral(kOlder, "adamw_torch"), rows);
  tied.model.family = Family::llama, tied.model.tie_word_embeddings = true;
  CHECK(figures(tied, Fsdp1{}) == Figures{41740228, 23715928});
}

TEST_CASE("estimate/cut_mistral_runs: Adagrad's sums of parameters on the host, whose counts stay on the GPU") {
  const Fsdp1 offloaded{.cpu_offload = true};
  CHECK(figures(cut_mistral(kOlder, "adagrad"), offloaded) == Figures{49837260, 17039528});
  CHECK(figures(adapted(cut_mistral(kNewer, "adagrad"), {}), offloaded) == Figures{41516836, 17039616});
}

TEST_CASE("estimate/cut_mistral_runs: Adagrad holds the parameters that FSDP2 cuts, and their sums") {
  CHECK(figures(cut_mistral(kNewer, "adagrad"), Fsdp2{}) == Figures{115104610, 88363362});
  CHECK(figures(cut_mistral(kNewer, "adagrad"), Fsdp2{.cpu_offload = true}) == Figures{91006332, 70532446});
  CHECK(figures(adapted(cut_mistral(kNewer, "adagrad"), {}), Fsdp2{}) == Figures{38511384, 22808190});
}

TEST_CASE("estimate/cut_mistral_runs: DeepSpeed makes Adagrad again, and the first one's sums stay") {
  JobSpec job = adapted(cut_mistral(kOlder, "adagrad"), {});
  CHECK(figures(job, Zero{.stage = 2, .reduce_bucket_size = 500'000'000}) == Figures{1038378384, 35918932});
  job.loading = Loading::cpu;  // where they stay
  CHECK(figures(job, kZero3) == Figures{1057875801, 1022157657});
}

}  // namespace qlp

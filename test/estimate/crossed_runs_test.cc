// Options across plans as the real libraries ran them on a null GPU: Llama 3.2 1B cut to two layers, 129 tokens,
// checkpointing, two steps; torch 2.8.0, transformers 4.57.1, peft 0.18.0, accelerate 1.15.0, bitsandbytes 0.50.2.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

using test::Figures;
using test::figures;

JobSpec two_layers(std::int64_t world_size) {
  JobSpec job = small_job(llama_1b(2));
  job.model.tie_word_embeddings = true, job.model.checkpoint_dtype = DType::bfloat16;
  job.training.seq_len = 129, job.training.num_steps = 2;
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.loading = Loading::gpu;
  job.cluster.world_size = world_size;
  job.stack = kOlder;
  return job;
}

JobSpec with_adapter(JobSpec job, std::vector<std::string> saved, std::vector<std::string> targets = {}) {
  job.adapter = AdapterSpec{.r = 8, .all_linear = targets.empty()};
  job.adapter->target_modules = std::move(targets), job.adapter->modules_to_save = std::move(saved);
  return job;
}

JobSpec with(JobSpec job, const char* optimizer) {
  job.training.optimizer = named_optimizer(optimizer);
  return job;
}

JobSpec in_4_bits(JobSpec job) {
  job.quantization = QuantizationSpec{.double_quant = true, .quant_storage = DType::bfloat16};
  job.training.gradient_accumulation_steps = 2;
  return job;
}

const Zero kZero3{.stage = 3};

/// With biases of q, k and v.
ModelSpec small_qwen2() {
  ModelSpec spec;
  spec.family = Family::qwen2;
  spec.hidden_size = 1024, spec.intermediate_size = 2048, spec.num_hidden_layers = 2, spec.vocab_size = 32003;
  spec.num_attention_heads = 8, spec.num_key_value_heads = 2, spec.head_dim = 128, spec.qkv_bias = true;
  spec.max_position_embeddings = 32768, spec.checkpoint_dtype = DType::bfloat16;
  return spec;
}

}  // namespace

TEST_CASE("estimate/crossed_runs: copies of norms") {
  const std::vector<std::string> targets{"q_proj", "v_proj"};
  CHECK(figures(with_adapter(two_layers(1), {"norm"}, targets), Single{}) == Figures{988222380, 787005588});
  CHECK(figures(with_adapter(two_layers(3), {"norm"}, targets), Fsdp1{}) == Figures{1050386562, 273871050});
  CHECK(figures(in_4_bits(with_adapter(two_layers(4), {"embed_tokens", "input_layernorm"}, targets)),
                Fsdp1{.use_orig_params = false}) == Figures{3580663836, 953866256});
  CHECK(figures(with_adapter(two_layers(3), {"norm"}), Fsdp2{}) == Figures{1572447832, 276299028});
}

TEST_CASE("estimate/crossed_runs: optimizers on the host") {
  const Fsdp1 offloaded{.cpu_offload = true};
  CHECK(figures(with(two_layers(4), "adafactor"), offloaded) == Figures{2240036960, 17039444});
  CHECK(figures(in_4_bits(with_adapter(with(two_layers(4), "paged_adamw_8bit"), {})), offloaded) ==
        Figures{915780388, 18985996});
  CHECK(figures(with_adapter(with(two_layers(5), "ademamix_8bit"), {}),
                Fsdp1{.use_orig_params = false, .cpu_offload = true}) == Figures{864711542, 17039444});
  CHECK(figures(with(two_layers(2), "lion_32bit"), Fsdp1{.sharding_strategy = ShardingStrategy::shard_grad_op,
                                                         .cpu_offload = true}) == Figures{2361679968, 17039444});
}

TEST_CASE("estimate/crossed_runs: biases that are trained beside frozen weights") {
  JobSpec job = with_adapter(two_layers(3), {}, {"q_proj", "up_proj"});
  job.model = small_qwen2();
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  job.adapter->r = 4, job.adapter->bias = AdapterBias::lora_only;
  CHECK(figures(job, Fsdp1{}) == Figures{294064888, 108524430});
  job.adapter->bias = AdapterBias::all, job.adapter->dtype = DType::bfloat16;
  CHECK(figures(job, Fsdp1{}) == Figures{294073080, 108532622});
}

TEST_CASE("estimate/crossed_runs: ZeRO-3 without mixed precision reduces 16-bit gradients in float32") {
  JobSpec job = two_layers(3);
  job.model.vocab_size = 32003;
  job.training.gradient_checkpointing = GradientCheckpointing::none, job.training.bf16 = false;
  CHECK(figures(job, kZero3) == Figures{4144808143, 3140183413});
  JobSpec twice = job;
  twice.training.gradient_accumulation_steps = 2;
  CHECK(figures(twice, Zero{.stage = 3, .reduce_bucket_size = 3'000'000}) == Figures{1982383925, 1152183413});
  job = with_adapter(std::move(job), {}, {"q_proj", "up_proj"});
  job.adapter->r = 4, job.adapter->autocast_adapter_dtype = false;
  CHECK(figures(job, kZero3) == Figures{2665802861, 2142769061});
}

// torch makes it for the parameters, DeepSpeed once more for its flat parts, which are on the host.
TEST_CASE("estimate/crossed_runs: torch's own Adagrad under ZeRO-2 with offload") {
  JobSpec job = with_adapter(with(two_layers(6), "adagrad"), {});
  ModelSpec& model = job.model = small_qwen2();
  model.hidden_size = 3584, model.intermediate_size = 18944, model.num_hidden_layers = 3, model.vocab_size = 50257;
  model.num_attention_heads = 28, model.num_key_value_heads = 4, model.head_dim = 128;
  job.training.micro_batch_size = 3, job.training.seq_len = 2048, job.training.num_steps = 3;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.adapter->r = 64, job.adapter->dtype = DType::bfloat16;
  Zero plan{.stage = 2, .reduce_bucket_size = 50'000'000, .overlap_comm = true, .allgather_bucket_size = 50'000'000};
  plan.offload_optimizer.device = OffloadDevice::cpu, plan.zero_force_ds_cpu_optimizer = false;
  CHECK(figures(job, plan) == Figures{6134147228, 2207508624});
}

TEST_CASE("estimate/crossed_runs: trained biases and other optimizers under ZeRO-3") {
  JobSpec job = with_adapter(two_layers(3), {}, {"q_proj", "up_proj"});
  job.model = small_qwen2();
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  job.adapter->r = 4, job.adapter->bias = AdapterBias::all;
  CHECK(figures(job, kZero3) == Figures{1341150829, 1072954925});
  job = with_adapter(with(two_layers(3), "rmsprop"), {}, {"q_proj"});
  job.model.vocab_size = 32003, job.adapter->r = 4;
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  CHECK(figures(job, kZero3) == Figures{1664285193, 1142048061});
}

TEST_CASE("estimate/crossed_runs: what lies beside an embedding that scales itself") {
  JobSpec job = two_layers(1);
  ModelSpec& model = job.model = ModelSpec{};
  model.family = Family::gemma3_text, model.tie_word_embeddings = true, model.checkpoint_dtype = DType::bfloat16;
  model.hidden_size = 1152, model.intermediate_size = 6912, model.num_hidden_layers = 2, model.vocab_size = 32003;
  model.num_attention_heads = 4, model.num_key_value_heads = 1, model.head_dim = 256;
  model.max_position_embeddings = 32768, model.sliding_window = 512, model.sliding_window_pattern = 6;
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  job.adapter = AdapterSpec{.r = 4, .target_modules = {"q_proj", "embed_tokens"}};
  CHECK(figures(job, Single{}).peak == 269012882);
  job.adapter = AdapterSpec{.r = 4, .target_modules = {"q_proj"}, .trainable_token_indices = {3, 7}};
  CHECK(figures(job, Single{}).peak == 374237692);
}

TEST_CASE("estimate/crossed_runs: what lies beside the embedding under FSDP2") {
  CHECK(figures(with_adapter(two_layers(3), {}, {"q_proj", "embed_tokens"}), Fsdp2{}) ==
        Figures{1577697746, 278237088});
  JobSpec job = with_adapter(two_layers(3), {}, {"q_proj"});
  job.model.tie_word_embeddings = false, job.adapter->trainable_token_indices = {1, 5, 9};
  CHECK(figures(job, Fsdp2{}) == Figures{2025284522, 448715648});
  // A copy of the table, which accelerate gets when it asks for its weight.
  const auto run = dry_run(job, Fsdp2{}, 0);
  REQUIRE(run);
  const auto prepare = std::ranges::find(run->timeline.phases(), "prepare", &Phase::name);
  CHECK(prepare->requested.bytes == 2251073050);
}

// OLMo 3 makes the tables of full attention too, and its layers do not get them.
TEST_CASE("estimate/crossed_runs: two sliding layers, in 4 bits, offloaded by ZeRO-2") {
  JobSpec job = with_adapter(with(two_layers(48), "lion_32bit"), {}, {"down_proj"});
  ModelSpec& model = job.model;
  model.family = Family::olmo3, model.tie_word_embeddings = false;
  model.hidden_size = 4096, model.intermediate_size = 11008, model.vocab_size = 100278;
  model.num_attention_heads = 32, model.num_key_value_heads = 32, model.head_dim = 128;
  model.max_position_embeddings = 8192, model.sliding_window = 4096, model.sliding_window_pattern = 4;
  job.training.micro_batch_size = 2, job.training.seq_len = 1025;
  job.training.attention = Attention::flash_attention_2;
  job.adapter->r = 3, job.adapter->lora_dropout = 0.05;
  job.quantization = QuantizationSpec{.double_quant = false, .quant_storage = DType::uint8, .prepare_kbit = true};
  Zero plan{.stage = 2, .overlap_comm = true};
  plan.zero_force_ds_cpu_optimizer = false;
  plan.offload_optimizer = {.device = OffloadDevice::cpu, .pin_memory = true};
  CHECK(figures(job, plan).peak == 4495489504);
}

}  // namespace qlp

// Ranks that share layers, sequences or experts come to what one rank does.
#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_one_rank;
using test::Tolerance;

constexpr Tolerance kSixteenBits{.loss = 0.02, .weights = 0.05};

JobSpec float_job(const ModelSpec& model, std::int64_t ranks, const Mesh& mesh) {
  JobSpec job = small_job(model);
  job.dtype = DType::float32, job.training.bf16 = false;
  job.loading = Loading::gpu;
  job.model.vocab_size = 132;
  job.training.num_steps = 3, job.training.micro_batch_size = 3;
  job.training.optimizer = named_optimizer("sgd");
  job.cluster.world_size = ranks, job.cluster.mesh = mesh;
  return job;
}

/// Sequences that two or more ranks of FSDP2 share, for which the ring has kernels in 16 bits alone.
JobSpec shared_sequences(std::int64_t ranks, std::int64_t cp) {
  JobSpec job = float_job(small_model(Family::llama), ranks, {.cp = cp});
  job.dtype = DType::bfloat16, job.training.bf16 = true;
  job.training.seq_len = 48;
  return job;
}

/// As many pairs of tokens and experts as the experts divide.
JobSpec shared_experts(Family family, std::int64_t ranks, const Mesh& mesh) {
  JobSpec job = float_job(small_model(family), ranks, mesh);
  job.training.seq_len = 24, job.training.micro_batch_size = 2;
  return job;
}

}  // namespace

TEST_CASE("estimate/computed_meshes: layers that two ranks share, of every family") {
  for (const Family family : {Family::llama, Family::mistral, Family::qwen2, Family::qwen3, Family::phi3, Family::olmo2,
                              Family::mixtral, Family::qwen3_moe}) {
    CAPTURE(static_cast<int>(family));
    check_equals_one_rank(float_job(small_model(family), 2, {.tp = 2}), Single{}, {});
  }
}

TEST_CASE("estimate/computed_meshes: layers that are shared, with tied tables, micro steps and any optimizer") {
  JobSpec job = float_job(small_model(Family::llama), 2, {.tp = 2});
  job.training.gradient_accumulation_steps = 2;
  job.model.tie_word_embeddings = true;
  check_equals_one_rank(job, Single{}, {});
  job.model.tie_word_embeddings = false;
  for (const char* name :
       {"adamw_torch", "adamw_torch_fused", "adamw_torch_forloop", "adagrad", "rmsprop", "schedule_free_adamw"}) {
    CAPTURE(name);
    job.training.optimizer = named_optimizer(name);
    check_equals_one_rank(job, Single{},
                          {.tolerance = {.loss = 1e-3, .weights = 0.05}, .lr = 1e-3});  // some divide by what is small
  }
}

TEST_CASE("estimate/computed_meshes: adapters on layers that are shared, with dropout and checkpointing") {
  JobSpec job = float_job(small_model(Family::llama), 2, {.tp = 2});
  job.adapter = small_lora();
  job.adapter->all_linear = false;
  job.adapter->target_modules = {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"};
  job.adapter->lora_dropout = 0.1;
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  check_equals_one_rank(job, Single{}, {.lr = 1});
}

TEST_CASE("estimate/computed_meshes: biases beside outputs that ranks sum are added once") {
  JobSpec job = float_job(small_model(Family::llama), 2, {.tp = 2});
  job.model.qkv_bias = job.model.attention_bias = job.model.mlp_bias = true;
  check_equals_one_rank(job, Single{}, {});
  job.cluster.world_size = 4;
  check_equals_one_rank(job, Fsdp2{}, {.replicas = 2, .has_weights = false});
}

TEST_CASE("estimate/computed_meshes: layers that are shared beside FSDP2") {
  const JobSpec job = float_job(small_model(Family::qwen3), 4, {.tp = 2});
  for (const bool reshards : {true, false})
    check_equals_one_rank(job, Fsdp2{.reshard_after_forward = reshards}, {.replicas = 2, .has_weights = false});
  check_equals_one_rank(job, Fsdp2{.hybrid = true, .dp_shard_size = 1}, {.replicas = 2, .has_weights = false});
}

TEST_CASE("estimate/computed_meshes: frequencies go by the places of tokens, not by the length of a rank's piece") {
  JobSpec job = shared_sequences(2, 2);  // of 48 tokens; each rank has 24, the last of which stand behind the 30th
  job.model.family = Family::phi3;
  job.model.rope = RopeKind::longrope, job.model.original_max_position_embeddings = 30;
  job.model.rope_scaling.long_factor.assign(static_cast<std::size_t>(job.model.head_dim / 2), 8.0);
  check_equals_one_rank(job, Fsdp2{}, {.tolerance = kSixteenBits});
}

TEST_CASE("estimate/computed_meshes: sequences that go round a ring of two, three and four ranks") {
  check_equals_one_rank(shared_sequences(2, 2), Fsdp2{}, {.tolerance = kSixteenBits});
  JobSpec job = shared_sequences(3, 3);
  job.cluster.mesh.cp_comm_strategy = CpCommStrategy::alltoall;
  check_equals_one_rank(job, Fsdp2{}, {.tolerance = kSixteenBits});
  job = shared_sequences(4, 4);
  job.adapter = small_lora();
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  check_equals_one_rank(job, Fsdp2{}, {.tolerance = kSixteenBits});
  check_equals_one_rank(shared_sequences(4, 2), Fsdp2{}, {.replicas = 2, .tolerance = kSixteenBits});
  check_equals_one_rank(shared_sequences(8, 2), Fsdp2{.hybrid = true, .dp_shard_size = 2},
                        {.replicas = 4, .tolerance = kSixteenBits});
}

TEST_CASE("estimate/computed_meshes: experts that ranks share, to which tokens travel") {
  for (const Family family : {Family::mixtral, Family::qwen3_moe, Family::qwen2_moe}) {
    CAPTURE(static_cast<int>(family));
    check_equals_one_rank(shared_experts(family, 2, {.tp = 2, .ep = 2}), Single{}, {.lr = 0.1, .even_routing = true});
    for (const std::int64_t ranks : {2, 4})  // all of which share them, or pairs of which
      check_equals_one_rank(shared_experts(family, ranks, {.ep = 2}), Fsdp2{},
                            {.replicas = ranks, .lr = 0.1, .even_routing = true, .has_weights = false});
    check_equals_one_rank(shared_experts(family, 4, {.tp = 2, .ep = 2}), Fsdp2{},
                          {.replicas = 2, .lr = 0.1, .even_routing = true, .has_weights = false});
  }
}

TEST_CASE("estimate/computed_meshes: experts get as many tokens as their routers send") {
  check_equals_one_rank(shared_experts(Family::mixtral, 3, {.ep = 3}), Fsdp2{},
                        {.replicas = 3, .lr = 0.1, .has_weights = false, .same_peaks = false});
}

}  // namespace qlp

// Optimizers on plans, as the real libraries ran them on a null GPU: Llama 3.2 1B cut to three layers, 512 tokens,
// bf16, three steps, four ranks unless it says otherwise; torch 2.8.0, transformers 4.57.1, peft 0.18.0,
// accelerate 1.15.0, DeepSpeed 0.18.3; torch 2.14.1, transformers 5.24.0, peft 0.21.2; grokadamw 0.1.2, torch-optimi
// 0.3.3.
#include <utility>

#include <doctest/doctest.h>

#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

using test::Figures;
using test::figures;

const Zero kZero3{.stage = 3, .reduce_bucket_size = 500'000'000, .stage3_prefetch_bucket_size = 50'000'000};

JobSpec full(const StackVersions& stack, const char* optimizer, std::int64_t world_size = 4) {
  JobSpec job = small_job(llama_1b(3));
  job.model.tie_word_embeddings = true, job.model.checkpoint_dtype = DType::bfloat16;
  job.training.seq_len = 512, job.training.num_steps = 3;
  job.training.optimizer = named_optimizer(optimizer);
  job.loading = Loading::gpu;
  job.cluster.world_size = world_size;
  job.stack = stack;
  return job;
}

JobSpec lora(const StackVersions& stack, const char* optimizer, std::int64_t world_size = 4) {
  JobSpec job = full(stack, optimizer, world_size);
  AdapterSpec adapter;
  adapter.r = 8, adapter.all_linear = true;
  job.adapter = std::move(adapter);
  return job;
}

}  // namespace

TEST_CASE("estimate/optimizer_runs: GrokAdamW, whose averages come to the GPU one parameter at a time") {
  CHECK(figures(full(kNewer, "grokadamw", 1), Single{}) == Figures{4424261902, 907309326});
  CHECK(figures(lora(kOlder, "grokadamw", 1), Single{}) == Figures{1881374952, 911536276});
  CHECK(figures(full(kOlder, "grokadamw"), Fsdp1{}) == Figures{2745993316, 907309144});
  CHECK(figures(full(kNewer, "grokadamw"), Fsdp2{}) == Figures{2867636500, 462174478});
  CHECK(figures(full(kOlder, "grokadamw"), Zero{.stage = 2}) == Figures{4548511840, 1352443988});
}

TEST_CASE("estimate/optimizer_runs: StableAdamW on parts of parameters") {
  CHECK(figures(full(kOlder, "stable_adamw"), Fsdp1{.use_orig_params = false}) == Figures{3636263048, 1352444028});
  CHECK(figures(lora(kNewer, "stable_adamw"), Fsdp1{}) == Figures{1857584738, 243834382});
  CHECK(figures(lora(kNewer, "stable_adamw"), Fsdp2{}) == Figures{1710776022, 242777736});
  CHECK(figures(full(kOlder, "stable_adamw"), Zero{.stage = 2}) == Figures{4818723442, 2242713702});
  CHECK(figures(lora(kOlder, "stable_adamw"), kZero3) == Figures{3066291894, 1245976162});
}

TEST_CASE("estimate/optimizer_runs: GrokAdamW on the flat parts of ZeRO-3") {
  CHECK(figures(lora(kOlder, "grokadamw"), kZero3).peak == 3064178349);
}

// torchao 0.12.0.
TEST_CASE("estimate/optimizer_runs: torchao's 8 bits on the flat parts of ZeRO-3") {
  CHECK(figures(full(kOlder, "adamw_torch_8bit"), kZero3).peak == 4234752613);
  CHECK(figures(lora(kOlder, "adamw_torch_8bit"), kZero3) == Figures{3064717037, 1244401305});
}

// Of which each parameter of the first flat part has a slice, with values of its own for the codes.
TEST_CASE("estimate/optimizer_runs: torchao's 8 bits on the flat parts of ZeRO-2") {
  CHECK(figures(full(kOlder, "adamw_torch_8bit"), Zero{.stage = 2}) == Figures{4154524256, 1578514516});
}

TEST_CASE("estimate/optimizer_runs: torchao's 8 bits are not sliced between blocks of 256") {
  JobSpec job = lora(kOlder, "adamw_torch_8bit", 1);
  job.adapter->all_linear = false, job.adapter->target_modules = {"q_proj"};
  job.adapter->r = 1;
  job.model.num_hidden_layers = 4;
  CHECK(dry_run(job, Zero{.stage = 2}, 0));
  job.model.head_dim = 66;  // 32 heads of it are no whole blocks; four layers are
  const auto run = dry_run(job, Zero{.stage = 2}, 0);
  REQUIRE_FALSE(run);
  CHECK(run.error().front().code == "zero-state-blocks");
}

TEST_CASE("estimate/optimizer_runs: with parameters on the host they take nothing of the GPU") {
  for (const char* optimizer : {"stable_adamw", "grokadamw", "schedule_free_adamw", "lomo"}) {
    CAPTURE(optimizer);
    JobSpec older = full(kOlder, optimizer), newer = full(kNewer, optimizer);
    older.loading = newer.loading = Loading::cpu;
    CHECK(figures(older, Fsdp1{.cpu_offload = true}) == Figures{2300858464, 17039444});
    CHECK(figures(newer, Fsdp2{.cpu_offload = true}) == Figures{2240037136, 17039626});
  }
  JobSpec muon = lora(kNewer, "muon");
  muon.loading = Loading::cpu;
  CHECK(figures(muon, Fsdp2{.cpu_offload = true}) == Figures{1485037912, 17039626});
}

// galore_torch 1.0, in qlora-plan's trace as the oracle has no cuSOLVER; the key matrix is projected from the left, the
// gate from the right.
TEST_CASE("estimate/optimizer_runs: GaLore on DTensors, whose vectors are those of the whole matrix") {
  const auto galore = [](const StackVersions& stack, ProjectionSide side, std::int64_t ranks) {
    JobSpec job = full(stack, "galore_adamw", ranks);
    job.training.optim_targets = {.modules = {"k_proj", "gate_proj"}};
    *low_rank_of(job.training.optimizer.kind) = {
        .rank = 64, .proj_type = side, .update_proj_gap = 2, .scale = GaLore::kScale};
    return job;
  };
  CHECK(figures(galore(kNewer, ProjectionSide::std, 4), Fsdp2{}) == Figures{3710720276, 1305258254});
  CHECK(figures(galore(kOlder, ProjectionSide::std, 4), Fsdp2{}) == Figures{3710720152, 1305258130});
  CHECK(figures(galore(kNewer, ProjectionSide::std, 3), Fsdp2{}) == Figures{4182410046, 1716003626});
  CHECK(figures(galore(kNewer, ProjectionSide::std, 8), Fsdp2{.hybrid = true, .dp_shard_size = 4}) ==
        Figures{3801952532, 1305258254});
  CHECK(figures(galore(kNewer, ProjectionSide::reverse_std, 4), Fsdp2{}) == Figures{3868203284, 1462741262});
  CHECK(figures(galore(kNewer, ProjectionSide::full, 4), Fsdp2{}) == Figures{3918534932, 1513072910});
}

// apollo_torch 1.0, in the same way.
TEST_CASE("estimate/optimizer_runs: APOLLO by singular vectors") {
  for (const auto& [stack, expected] :
       {std::pair{kNewer, Figures{4432118042, 2482786586}}, std::pair{kOlder, Figures{4432117918, 2482786462}}}) {
    JobSpec job = full(stack, "apollo_adamw", 1);
    job.training.optim_targets = {.modules = {"k_proj", "gate_proj"}};
    job.training.optimizer.kind =
        Apollo{.proj = Apollo::Projector::svd, .low_rank = {.rank = 64, .update_proj_gap = 2}};
    CHECK(figures(job, Single{}) == expected);
  }
}

// The Trainer takes it by optimizer_cls_and_kwargs.
TEST_CASE("estimate/optimizer_runs: Muon on DTensors") {
  CHECK(figures(lora(kNewer, "muon"), Fsdp2{}) == Figures{1709718876, 241720590});
  CHECK(figures(lora(kNewer, "muon", 3), Fsdp2{}) == Figures{1784817784, 316819496});  // which share 8 rows unevenly
  CHECK(figures(lora(kNewer, "muon", 8), Fsdp2{.hybrid = true, .dp_shard_size = 4}) == Figures{1709718876, 241720590});
}

// Its sums of frozen weights are of the parts that it is given, or of the flat ones.
TEST_CASE("estimate/optimizer_runs: AdaLOMO with an adapter under FSDP1") {
  CHECK(figures(lora(kOlder, "adalomo"), Fsdp1{}).held == 687912024);
  CHECK(figures(lora(kNewer, "adalomo"), Fsdp1{.use_orig_params = false}).held == 686855316);
}

}  // namespace qlp

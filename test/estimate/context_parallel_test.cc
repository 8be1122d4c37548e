#include <string>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/estimate.h"
#include "estimate/parallel_rules.h"
#include "estimate/rank_report.h"
#include "small_jobs.h"

using namespace qlp;

namespace {

/// Two layers of Llama-3.2-1B, 1024 tokens that all ranks share, bf16, every rank reads for itself.
JobSpec llama(std::int64_t world_size, std::int64_t cp) {
  JobSpec job;
  job.model = llama_1b(2);
  job.loading = Loading::gpu;
  job.training.seq_len = 1024;
  job.training.bf16 = true;
  job.training.num_steps = 2;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.cluster.gpu.capacity = Bytes{84'974'239'744};
  job.cluster.world_size = world_size;
  job.cluster.mesh.cp = cp;
  return job;
}

std::uint64_t requested_peak(const JobSpec& job, const Fsdp2& plan = {}) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  return rank_report(*run, 0, false).training_peak.figures.requested.count();
}

std::string refusal_of(const JobSpec& job, const ShardingPlan& plan = Fsdp2{}) {
  const auto run = dry_run(job, plan, 0);
  return run ? "" : run.error().front().code;
}

}  // namespace

// Requested bytes of rank 0: torch 2.14.1, transformers 5.24.0, accelerate 1.15.0 (fsdp_version 2, cp_size) on
// PyTorch's allocator.
TEST_CASE("estimate/context_parallel: a sequence that ranks share, as accelerate runs it") {
  CHECK(requested_peak(llama(2, 2)) == 6506254612);
  JobSpec job = llama(4, 4);
  job.cluster.mesh.cp_comm_strategy = CpCommStrategy::alltoall;
  CHECK(requested_peak(job) == 3786983700);
  job = llama(4, 2);
  job.adapter = AdapterSpec{.r = 8, .all_linear = true};
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  CHECK(requested_peak(job) == 2060647708);
}

// The same, and torch 2.8.0, transformers 4.57.1, whose batches are cut on the host and whose model counts positions
// beside those that it is given.
TEST_CASE(
    "estimate/context_parallel: a hybrid mesh shards over ranks that share a sequence, and replicates over others") {
  const Fsdp2 hybrid{.hybrid = true, .dp_shard_size = 2};
  JobSpec job = llama(32, 4);
  job.model.tie_word_embeddings = true;
  CHECK(requested_peak(job, hybrid) == 2907749652);
  job.stack.torch = {2, 8, 0}, job.stack.transformers = {4, 57, 1}, job.stack.peft = {0, 18, 0};
  CHECK(requested_peak(job, hybrid) == 2907739288);
  job.cluster.world_size = 4, job.cluster.mesh = {.cp = 4, .cp_comm_strategy = CpCommStrategy::alltoall};
  CHECK(requested_peak(job) == 3514620056);
  job.cluster.mesh = {.cp = 2};
  job.adapter = AdapterSpec{.r = 8, .all_linear = true};
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  CHECK(requested_peak(job) == 1533189272);
}

TEST_CASE("estimate/context_parallel: every place in the ring is played, and the worst decides") {
  JobSpec job = llama(4, 4);
  job.model = small_model(Family::llama);
  job.training.seq_len = 64;
  job.plans = {{"fsdp2", Fsdp2{}}};
  const Report report = estimate(job);
  REQUIRE(report.plans.front().ranks.size() == 4);
  for (const RankReport& rank : report.plans.front().ranks)
    CHECK(rank.peak.device_used <= report.plans.front().ranks.front().peak.device_used);
}

TEST_CASE("estimate/context_parallel: a sequence on more ranks takes less") {
  CHECK(requested_peak(llama(4, 4)) < requested_peak(llama(4, 2)));
  CHECK(requested_peak(llama(4, 2)) < requested_peak(llama(4, 1)));
}

TEST_CASE("estimate/context_parallel: what accelerate and the Trainer refuse, and what is not planned") {
  JobSpec job = llama(2, 2);
  CHECK(refusal_of(job, Ddp{}) == "cp-plan");
  CHECK(refusal_of(job, Single{}) == "cp-plan");
  job.training.seq_len = 1023;
  CHECK(refusal_of(job) == "cp-length");
  job = llama(2, 2);
  job.training.attention = Attention::eager;
  CHECK(refusal_of(job) == "cp-attention");
  job = llama(2, 2);
  job.model.sliding_window = 512;
  CHECK(refusal_of(job) == "cp-window");
  job = llama(2, 2);
  job.training.bf16 = false, job.dtype = DType::float32;
  CHECK(refusal_of(job) == "cp-float32");
  job = llama(4, 2);
  job.cluster.mesh.tp = 2;
  CHECK(refusal_of(job) == "cp-mesh");
  CHECK(refusal_of(llama(8, 2), Fsdp2{.hybrid = true, .dp_shard_size = 1}) == "cp-hybrid");
  job = llama(24, 3);
  job.training.seq_len = 1026, job.cluster.gpus_per_node = 8;
  CHECK(refusal_of(job, Fsdp2{.hybrid = true}) == "cp-hybrid");  // 8 ranks of a node, of which 3 share a sequence
  job = llama(2, 2);
  job.training.evaluation = EvaluationSpec{.prediction_loss_only = true};
  CHECK(refusal_of(job).empty());
  job.stack.transformers = {4, 57, 1};
  CHECK(refusal_of(job) == "mesh-phases");
  job = llama(2, 2);
  job.stack.transformers = {4, 56, 2};
  CHECK(refusal_of(job) == "cp-stack");
  job.stack.transformers = {4, 57, 1}, job.stack.torch = {2, 7, 1};
  CHECK(refusal_of(job) == "cp-stack");
}

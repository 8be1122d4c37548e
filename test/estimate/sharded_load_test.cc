#include "estimate/sharded_load.h"

#include <string>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/rank_report.h"
#include "small_jobs.h"

using namespace qlp;

namespace {

/// Layers of Llama-3.2-1B, 512 tokens, bf16 autocast; two ranks share each layer.
JobSpec llama(std::int64_t layers, std::int64_t world_size) {
  JobSpec job;
  job.model = llama_1b(layers);
  job.training.seq_len = 512;
  job.training.bf16 = true;
  job.training.num_steps = 2;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.cluster.gpu.capacity = Bytes{84'974'239'744};
  job.cluster.world_size = world_size;
  job.cluster.mesh.tp = 2;
  return job;
}

std::uint64_t requested_peak(const JobSpec& job, const Fsdp2& plan) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  return rank_report(*run, 0, false).training_peak.figures.requested.count();
}

std::string refusal_of(const JobSpec& job, const ShardingPlan& plan) {
  const auto run = dry_run(job, plan, 0);
  return run ? "" : run.error().front().code;
}

}  // namespace

// Requested bytes of rank 0: torch 2.14.1, transformers 5.24.0 (DistributedConfig of tp_size 2 and the sizes named) on
// PyTorch's allocator.
TEST_CASE("estimate/sharded_load: tensor parallelism beside FSDP2 as transformers runs it") {
  CHECK(requested_peak(llama(2, 4), Fsdp2{}) == 2291187994);
  JobSpec job = llama(2, 4);
  job.model.tie_word_embeddings = true;  // the root gathers the table once more
  CHECK(requested_peak(job, Fsdp2{}) == 2099034394);
  job = llama(3, 6);  // three ranks do not divide the rows
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  CHECK(requested_peak(job, Fsdp2{}) == 1985130118);
  job = llama(3, 4);
  job.dtype = DType::float32;
  const Fsdp2MixedPrecision policy{.param_dtype = PolicyDType::bfloat16, .reduce_dtype = PolicyDType::float32};
  CHECK(requested_peak(job, Fsdp2{.mp_policy = policy}) == 3757965596);
}

TEST_CASE("estimate/sharded_load: replicas of sharded groups, and of groups that share layers only") {
  CHECK(requested_peak(llama(3, 8), Fsdp2{.hybrid = true, .dp_shard_size = 2}) == 2412839194);
  CHECK(requested_peak(llama(3, 4), Fsdp2{.hybrid = true, .dp_shard_size = 1}) == 3697139994);
}

TEST_CASE("estimate/sharded_load: what transformers cannot be told is refused") {
  JobSpec job = small_job(small_model(Family::llama));
  job.model.vocab_size = 132;
  job.cluster.mesh.tp = 2;
  job.cluster.world_size = 4;
  CHECK(refusal_of(job, Fsdp2{}).empty());
  CHECK(refusal_of(job, Fsdp2{.reshard_after_forward = false}).empty());
  CHECK(refusal_of(job, Fsdp2{.reshard_after_forward = 2}) == "tp-fsdp2-reshard");
  CHECK(refusal_of(job, Fsdp2{.auto_wrap_policy = Fsdp2Wrap::no_wrap}) == "tp-fsdp2-wrap");
  CHECK(refusal_of(job, Fsdp2{.cpu_offload = true}) == "tp-fsdp2-offload");
  CHECK(refusal_of(job, Fsdp2{.mp_policy = {.param_dtype = PolicyDType::float16}}) == "tp-fsdp2-policy");
  job.adapter = AdapterSpec{.r = 4, .target_modules = {"q_proj"}};
  CHECK(refusal_of(job, Fsdp2{}) == "tp-fsdp2-adapter");
  CHECK(refusal_of(job, Fsdp2{.hybrid = true, .dp_shard_size = 1}) == "tp-replicated-adapter");
  job.adapter.reset();
  job.loading = Loading::cpu;
  CHECK(refusal_of(job, Fsdp2{}) == "tp-fsdp2-loading");
  job.loading = Loading::automatic;
  job.cluster.world_size = 2;
  CHECK(refusal_of(job, Fsdp2{}) == "tp-nothing-sharded");
}

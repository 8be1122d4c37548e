#include "estimate/loss_rules.h"

#include <algorithm>
#include <cstdint>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/rank_report.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

/// LoRA on every linear layer, rank 0 of 4, weights from the GPU, stack 2025-10 (liger-kernel 0.6).
JobSpec liger_job(const ModelSpec& model) {
  JobSpec job = small_lora_job(model);
  job.model.tie_word_embeddings = true;
  job.adapter->r = 16;
  job.training.seq_len = 512;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.training.loss = Loss::liger;
  job.training.num_steps = 3;
  job.cluster.world_size = 4;
  job.cluster.gpu.capacity = Bytes{std::uint64_t{80} << 30};
  job.stack = kOlder;
  return job;
}

bool refused(const JobSpec& job, const ShardingPlan& plan, std::string_view code) {
  return std::ranges::any_of(check_loss(job, plan), [&](const Diagnostic& d) { return d.code == code; });
}

std::uint64_t peak(const JobSpec& job, const ShardingPlan& plan, std::string_view phase) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  const RankReport report = rank_report(*run, 0, false);
  const auto found = std::ranges::find(report.phases, phase, &PhaseReport::name);
  REQUIRE(found != report.phases.end());
  return found->peak.requested.count();
}

}  // namespace

// Figures: Llama-3.2-1B cut to two layers, the libraries on a null GPU.
TEST_CASE("estimate/loss_rules: Liger reads a head that FSDP has gathered for the norm before it") {
  const JobSpec job = liger_job(llama_1b(2));
  CHECK(peak(job, Fsdp1{}, "micro1.forward") == 895'349'836);
  CHECK(peak(job, Fsdp1{}, "micro2.backward") == 1'003'961'444);
  // The group that holds norm, embedding and head is gathered anew in each step, though the head never runs.
  CHECK(peak(job, Fsdp2{}, "micro2.forward") == 1'512'469'954);
  CHECK(peak(job, Fsdp2{}, "micro3.forward") == 1'512'469'954);
}

TEST_CASE("estimate/loss_rules: FSDP2 does not gather a head whose unit nothing else runs in") {
  JobSpec job = liger_job(llama_1b(2));
  const auto runs = [&](const Fsdp2& plan) { return dry_run(job, plan, 0).has_value(); };
  CHECK(runs({}));
  job.model.tie_word_embeddings = false;
  CHECK_FALSE(runs({}));
  CHECK(runs({.ignored_params = Fsdp2Ignored::base}));
  job.stack.accelerate = {1, 13, 0};  // the head is in the unit of the root
  CHECK(runs({}));
  job.stack.accelerate = {1, 15, 0};
  job.adapter.reset();  // the norm's unit
  CHECK(runs({}));
}

// The same with 16384 words and layers of 1024 x 4096.
TEST_CASE("estimate/loss_rules: under ZeRO-3 the head is gathered as it is read, and fetched ahead from then on") {
  ModelSpec model = llama_1b(2);
  model.hidden_size = 1024, model.intermediate_size = 4096, model.vocab_size = 16384, model.num_attention_heads = 16;
  const JobSpec job = liger_job(model);
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.reduce_bucket_size = 2'000'000;
  CHECK(peak(job, plan, "micro1.forward") == 109'529'933);
  CHECK(peak(job, plan, "micro1.backward") == 114'668'401);
  CHECK(peak(job, plan, "micro2.forward") == 263'547'737);
  CHECK(peak(job, plan, "micro2.backward") == 173'644'669);
}

TEST_CASE("estimate/loss_rules: Liger leaves models alone that it does not know") {
  JobSpec job = small_job(small_model(Family::olmo3));
  job.stack = kOlder;
  const auto same = [&](Family family) {
    JobSpec plain = job;
    plain.model = small_model(family);
    JobSpec liger = plain;
    liger.training.loss = Loss::liger;
    return peak(plain, Single{}, "micro2.forward") == peak(liger, Single{}, "micro2.forward");
  };
  CHECK(same(Family::olmo3));
  CHECK(same(Family::glm));
  CHECK_FALSE(same(Family::gemma3_text));
  job.stack = kNewer;
  CHECK_FALSE(same(Family::olmo3));
  job.training.loss = Loss::liger;
  job.model = small_model(Family::granite);
  CHECK(refused(job, Single{}, "loss-liger-family"));
}

TEST_CASE("estimate/loss_rules: a head with an adapter, or one that is a copy in a unit of its own, is refused") {
  JobSpec job = liger_job(llama_1b(2));
  CHECK_FALSE(refused(job, Fsdp1{}, "loss-liger-saved-head"));
  job.adapter->modules_to_save = {"lm_head"};
  CHECK(refused(job, Fsdp1{}, "loss-liger-saved-head"));
  CHECK(refused(job, Fsdp2{}, "loss-liger-saved-head"));
  CHECK_FALSE(refused(job, Single{}, "loss-liger-saved-head"));
  job.adapter->all_linear = false, job.adapter->target_modules = {"lm_head"};
  CHECK_FALSE(refused(job, Single{}, "loss-liger-adapted-head"));  // what is a copy gets no adapter
  job.adapter->modules_to_save.clear();
  CHECK(refused(job, Single{}, "loss-liger-adapted-head"));
}

}  // namespace qlp

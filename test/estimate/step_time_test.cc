#include "estimate/step_time.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"
#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

ClusterSpec nodes_of(const char* gpu, std::int64_t world_size) {
  ClusterSpec cluster;
  cluster.gpu = *find_gpu(gpu);
  cluster.world_size = world_size;
  return cluster;
}

double seconds_of(Collective kind, std::int64_t ranks, std::int64_t stride, const ClusterSpec& cluster) {
  return least_seconds({kind, {MeshAxis::dp_shard, ranks, stride}, 8'000'000'000}, cluster);
}

StepTime time_of(JobSpec job, NamedPlan plan) {
  job.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  job.plans = {std::move(plan)};
  const Report report = estimate(job);
  REQUIRE_MESSAGE(report.plans[0].applicable(), report.plans[0].reason());
  REQUIRE(report.plans[0].step_time);
  return *report.plans[0].step_time;
}

double operations_in(const StepTime& time, DType dtype) { return time.operations[static_cast<std::size_t>(dtype)]; }

// Of the small Llama: elements of the weights that multiply, in one layer and in the head.
constexpr double kLayer = 96 * 72 + 2 * 48 * 72 + 72 * 96 + 3 * 100 * 72, kHead = 131 * 72;
constexpr double kTokens = 16;
// One product over the pairs of queries and keys, in two layers of four heads of width 24.
constexpr double kPairs = 2 * 2 * 4 * 24 * (16 * 17 / 2);

}  // namespace

TEST_CASE("estimate/step_time: collectives within a node run at the speed of NVLink where it joins the ranks") {
  const ClusterSpec a100 = nodes_of("A100 SXM4 80GB", 8);
  CHECK(seconds_of(Collective::all_gather, 8, 1, a100) == doctest::Approx(7.0 / 300));
  CHECK(seconds_of(Collective::all_reduce, 8, 1, a100) == doctest::Approx(14.0 / 300));
  const ClusterSpec bridged = nodes_of("A100 PCIe 80GB", 8);
  CHECK(seconds_of(Collective::all_gather, 2, 1, bridged) == doctest::Approx(4.0 / 300));
  CHECK(seconds_of(Collective::all_gather, 2, 4, bridged) == doctest::Approx(4.0 / 32));
  CHECK(seconds_of(Collective::all_gather, 8, 1, bridged) == doctest::Approx(7.0 / 32));
  ClusterSpec own = bridged;
  own.intra_node_bandwidth = Bytes{10'000'000'000};
  CHECK(seconds_of(Collective::all_gather, 8, 1, own) == doctest::Approx(0.7));
}

TEST_CASE("estimate/step_time: every runtime reads the weights in every pass") {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 2;
  const auto forward = [&](const char* plan) {
    const StepTime time = time_of(job, *find_plan(plan));
    return std::ranges::find(time.phases, "forward", &PhaseTime::phase)->terms.memory;
  };
  const double read = forward("fsdp2");
  CHECK(read > 0);
  for (const char* plan : {"ddp", "fsdp1-full-shard", "zero1", "zero2", "zero3"}) {
    CAPTURE(plan);
    CHECK(forward(plan) == doctest::Approx(read).epsilon(0.01));
  }
}

TEST_CASE("estimate/step_time: a switch that sums halves an all_reduce, and nothing else") {
  const ClusterSpec h100 = nodes_of("H100 SXM5 80GB", 8);
  CHECK(seconds_of(Collective::all_reduce, 8, 1, h100) == doctest::Approx(8.0 / 450));
  CHECK(seconds_of(Collective::reduce_scatter, 8, 1, h100) == doctest::Approx(7.0 / 450));
}

TEST_CASE("estimate/step_time: between nodes each GPU has its port") {
  const ClusterSpec two = nodes_of("H100 SXM5 80GB", 16);
  // Half of the whole enters each node, over eight ports; seven eighths reach each GPU within it.
  CHECK(seconds_of(Collective::all_gather, 16, 1, two) == doctest::Approx(7.0 / 450));
  ClusterSpec slow = two;
  slow.inter_node_bandwidth = Bytes{1'000'000'000};
  CHECK(seconds_of(Collective::all_gather, 16, 1, slow) == doctest::Approx(4.0 / 8));
  CHECK(seconds_of(Collective::all_reduce, 2, 8, slow) == doctest::Approx(8.0));
  CHECK(seconds_of(Collective::send, 2, 8, slow) == doctest::Approx(8.0));
  CHECK(seconds_of(Collective::send, 2, 1, slow) == doctest::Approx(8.0 / 450));
}

TEST_CASE("estimate/step_time: an unknown GPU has no bound") { CHECK_FALSE(step_time({}, ClusterSpec{}, false)); }

TEST_CASE("estimate/step_time: the bound is the longest term of each phase, as often as it comes") {
  const ClusterSpec a100 = nodes_of("A100 SXM4 80GB", 1);
  StepPhase forward{.phase = "forward", .times = 3}, update{.phase = "optimizer_step"};
  forward.work.operations[static_cast<std::size_t>(DType::bfloat16)] = 312e9;
  forward.work.memory_bytes = 203'900'000;
  update.work.memory_bytes = 2'039'000'000;
  update.work.device_to_host_bytes = 64'000'000'000;
  update.work.host_to_device_bytes = 32'000'000'000;
  const auto time = step_time({forward, update, forward}, a100, false);
  REQUIRE(time);
  CHECK(time->terms.compute == doctest::Approx(6e-3));
  CHECK(time->terms.memory == doctest::Approx(6e-4 + 1e-3));
  CHECK(time->terms.host_copies == doctest::Approx(2.0));
  CHECK(time->lower_bound == doctest::Approx(6e-3 + 2.0));
  REQUIRE(time->phases.size() == 2);
  CHECK(time->phases[0].times == 6);
}

TEST_CASE("estimate/step_time: tf32 quickens products of float32, and those alone, from Ampere on") {
  JobSpec job = small_job(small_model(Family::llama));
  job.dtype = DType::float32, job.training.bf16 = false;
  const double plain = time_of(job, {"single", Single{}}).terms.compute;
  job.training.tf32 = true;
  CHECK(time_of(job, {"single", Single{}}).terms.compute == doctest::Approx(plain * 19.5 / 156));
  job.training.bf16 = true;
  const double mixed = time_of(job, {"single", Single{}}).terms.compute;
  job.training.tf32 = false;
  CHECK(time_of(job, {"single", Single{}}).terms.compute == mixed);

  job.training.tf32 = true;
  job.cluster.gpu = *find_gpu("Tesla T4");
  job.plans = {{"single", Single{}}};
  CHECK(estimate(job).plans.front().refusals.front().code == "tf32-before-ampere");
}

TEST_CASE("estimate/step_time: a full fine-tune multiplies every weight three times") {
  JobSpec job = small_job(small_model(Family::llama));
  const double forward = 2 * kTokens * (2 * kLayer + kHead) + 2 * kPairs;
  const double backward = 4 * kTokens * (2 * kLayer + kHead) + 5 * kPairs;
  const StepTime time = time_of(job, {"single", Single{}});
  CHECK(operations_in(time, DType::bfloat16) == forward + backward);
  CHECK(operations_in(time, DType::float32) == 0);
  CHECK(time.terms.compute == doctest::Approx((forward + backward) / 312e12));

  job.training.gradient_accumulation_steps = 11;  // not all of them are played
  CHECK(operations_in(time_of(job, {"single", Single{}}), DType::bfloat16) == 11 * (forward + backward));
  job.training.gradient_accumulation_steps = 1;
  for (const auto checkpointing : {GradientCheckpointing::reentrant, GradientCheckpointing::nonreentrant}) {
    job.training.gradient_checkpointing = checkpointing;
    const double again = operations_in(time_of(job, {"single", Single{}}), DType::bfloat16) - forward - backward;
    // Without reentrance the second run ends when all that was saved is there: before the last product of a layer.
    const double skipped = checkpointing == GradientCheckpointing::nonreentrant ? 2 * kTokens * 2 * 72 * 100 : 0;
    CHECK(again == 2 * kTokens * 2 * kLayer + 2 * kPairs - skipped);
  }
}

TEST_CASE("estimate/step_time: the sharded step computes what the whole one does") {
  JobSpec job = small_qlora_job(small_model(Family::llama));
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  const double whole = time_of(job, {"single", Single{}}).terms.compute;
  job.cluster.world_size = 2;
  for (const char* name : {"ddp", "fsdp2", "fsdp2-no-reshard"}) {
    CAPTURE(name);
    const StepTime time = time_of(job, *find_plan(name));
    CHECK(time.terms.compute == doctest::Approx(whole));
    CHECK(time.terms.communication > 0);
    CHECK(time.lower_bound >= time.terms.longest());
  }
}

TEST_CASE("estimate/step_time: the optimizer reads and writes its share of the state") {
  JobSpec job = small_job(small_model(Family::llama));
  job.dtype = DType::float32;
  job.training.bf16 = false;
  const double elements = 2 * (kLayer + 2 * 72) + 2 * kHead + 72;
  const StepTime time = time_of(job, {"single", Single{}});
  REQUIRE(time.phases.size() == 3);
  CHECK(time.phases[2].phase == "optimizer_step");
  // Two states and the parameter are read and written, the gradient read; and a step count of each parameter.
  const double tensors = 2 * 9 + 3;
  CHECK(time.phases[2].terms.memory == doctest::Approx(4 * (7 * elements + 2 * tensors) / 2039e9));
}

}  // namespace qlp

#include "estimate/host_report.h"

#include <doctest/doctest.h>

#include "estimate/closed_form.h"
#include "estimate/estimate.h"
#include "estimate/small_jobs.h"

using namespace qlp;

namespace {

HostPhase phase(std::string name, std::uint64_t pageable, std::uint64_t pinned = 0, std::uint64_t mapped = 0) {
  HostPhase out{.name = std::move(name)};
  out.peak.pageable = pageable, out.peak.pinned = pinned, out.peak.mapped = mapped;
  out.held = out.peak;
  return out;
}

JobSpec job_of(std::int64_t world_size, std::int64_t gpus_per_node) {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = world_size, job.cluster.gpus_per_node = gpus_per_node;
  return job;
}

/// Weights of the checkpoint in bytes of `dtype`.
std::uint64_t model_bytes(const JobSpec& job, DType dtype) {
  JobSpec base = job;
  base.adapter.reset(), base.quantization.reset();
  return count_parameters(base).total * size_of(dtype);
}

HostReport host_under(JobSpec job, NamedPlan plan) {
  job.plans = {std::move(plan)};
  const Report report = estimate(job);
  REQUIRE(report.plans.front().host);
  return *report.plans.front().host;
}

const NamedPlan kDdp{"ddp", Ddp{}}, kFsdp1{"fsdp1-full-shard", Fsdp1{}}, kFsdp2{"fsdp2", Fsdp2{}};

}  // namespace

TEST_CASE("estimate/host_report: a node holds the sum of its processes, in the phase in which that is largest") {
  const std::vector<HostPhase> first{phase("load", 1000, 0, 5000), phase("prepare", 100), phase("end", 300, 512)};
  const std::vector<HostPhase> other{phase("load", 0, 0, 5000), phase("prepare", 400)};
  const HostReport report = host_report(job_of(16, 8), kFsdp1, first, &other);
  CHECK(report.processes == 8);
  CHECK(report.rank0.peak == Bytes{1000});
  CHECK(report.rank0.phase == "load");
  CHECK(report.others->peak == Bytes{812});
  CHECK(report.others->pinned == Bytes{512});
  CHECK(report.page_cache == Bytes{5000});
  CHECK(report.per_node == Bytes{8 * 812} + report.process * 8);
  CHECK(report.per_node_phase == "end");
}

TEST_CASE("estimate/host_report: one process of a node is all there is to it") {
  for (const NamedPlan& plan : {kDdp, NamedPlan{"single", Single{}}}) {
    const HostReport report = host_under(job_of(1, 8), plan);
    CHECK(report.processes == 1);
    CHECK_FALSE(report.others);
    CHECK(report.per_node == report.rank0.peak + report.process);
  }
}

TEST_CASE("estimate/host_report: loaded on the GPU, the checkpoint only passes through the page cache, once per node") {
  JobSpec job = job_of(8, 4);
  job.loading = Loading::gpu;
  const HostReport report = host_under(job, kDdp);
  CHECK(report.page_cache == Bytes{model_bytes(job, DType::bfloat16)});
  CHECK(report.rank0.categories[static_cast<std::size_t>(Category::parameters)] == Bytes{});
  CHECK(report.processes == 4);
}

TEST_CASE("estimate/host_report: loaded on the host in another dtype, every process holds the whole model") {
  JobSpec job = job_of(8, 4);
  job.loading = Loading::cpu;
  job.model.checkpoint_dtype = DType::bfloat16;
  job.dtype = DType::float32;
  const std::uint64_t whole = model_bytes(job, DType::float32);
  for (const NamedPlan& plan : {kDdp, kFsdp1}) {
    const HostReport report = host_under(job, plan);
    CHECK_FALSE(report.others);
    CHECK(report.rank0.categories[static_cast<std::size_t>(Category::parameters)].count() >= whole);
    CHECK(report.per_node.count() >= 4 * whole);
  }
}

TEST_CASE("estimate/host_report: loaded on the host in the dtype of the file, the model stays in the mapped file") {
  JobSpec job = job_of(8, 4);
  job.loading = Loading::cpu;
  const HostReport report = host_under(job, kDdp);
  const std::uint64_t whole = model_bytes(job, DType::bfloat16);
  CHECK(report.rank0.mapped == Bytes{whole});
  CHECK(report.rank0.peak.count() < whole);
}

TEST_CASE("estimate/host_report: what rank 0 loads for all costs once per node") {
  for (const NamedPlan& plan : {kFsdp1, kFsdp2})
    for (const bool quantized : {false, true}) {
      JobSpec job = quantized ? small_qlora_job(small_model(Family::llama)) : job_of(8, 4);
      job.cluster.world_size = 8, job.cluster.gpus_per_node = 4;
      job.loading = Loading::rank0;
      job.stack.transformers = {4, 57, 1};  // 5 leaves quantized weights on the GPU
      const HostReport report = host_under(job, plan);
      REQUIRE(report.others);
      const auto parameters = static_cast<std::size_t>(Category::parameters);
      if (quantized) {  // packed weights leave the GPU for host memory, and those that are not packed too
        CHECK(report.rank0.categories[parameters] > Bytes{});
        CHECK(report.others->categories[parameters].count() < report.rank0.categories[parameters].count() / 4);
      } else {
        CHECK(report.rank0.mapped == Bytes{model_bytes(job, DType::bfloat16)});
        CHECK(report.others->mapped == Bytes{});
      }
      CHECK(report.others->peak <= report.rank0.peak);
      CHECK(report.per_node <= report.rank0.peak + report.others->peak * 3 + report.process * 4);
    }
}

// What must hold for every job, whatever its figures are.
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/closed_form.h"
#include "estimate/dry_run.h"
#include "estimate/estimate.h"
#include "estimate/rank_report.h"
#include "estimate/small_jobs.h"
#include "memory/replay.h"
#include "memory/segment_source.h"
#include "plan/catalogue.h"
#include "report/report_json.h"

namespace qlp {
namespace {

struct NamedJob {
  std::string name;
  JobSpec job;
};

std::vector<NamedJob> sample_jobs() {
  std::vector<NamedJob> jobs{{"full", small_job(small_model(Family::llama))},
                             {"LoRA", small_lora_job(small_model(Family::qwen2))},
                             {"QLoRA", small_qlora_job(small_model(Family::llama))},
                             {"QLoRA in integers", small_qlora_job(small_model(Family::gemma2), DType::uint8)}};
  jobs[2].job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  for (auto& [name, job] : jobs) {
    job.cluster.world_size = 4;
    for (const auto plan : kPlanNames) job.plans.push_back(*find_plan(plan));
  }
  return jobs;
}

/// Calls `check` with every sample job under every plan that it can run under.
void for_each_run(const std::function<void(const JobSpec&, const DryRun&)>& check) {
  int ran = 0;
  for (const NamedJob& sample : sample_jobs())
    for (const NamedPlan& plan : sample.job.plans) {
      const auto run = dry_run(sample.job, plan.plan, 0);
      if (!run) continue;
      CAPTURE(sample.name);
      CAPTURE(plan.name);
      check(sample.job, *run);
      ++ran;
    }
  CHECK(ran >= 18);
}

LedgerFigures training_peak(const JobSpec& job, const ShardingPlan& plan) {
  const auto run = dry_run(job, plan, 0);
  return run ? rank_report(*run, 0, false).training_peak.figures : LedgerFigures{};
}

void check_rises(const std::vector<std::int64_t>& values, const std::function<void(JobSpec&, std::int64_t)>& set) {
  for (const NamedJob& sample : sample_jobs())
    for (const NamedPlan& plan : sample.job.plans) {
      LedgerFigures before{};
      for (const std::int64_t value : values) {
        JobSpec job = sample.job;
        set(job, value);
        const LedgerFigures peak = training_peak(job, plan.plan);
        CAPTURE(sample.name);
        CAPTURE(plan.name);
        CAPTURE(value);
        CHECK(peak.requested >= before.requested);
        CHECK(peak.allocated >= before.allocated);
        before = peak;
      }
    }
}

Bytes held(const CategoryBytes& sums, Category category) { return sums[static_cast<std::size_t>(category)]; }

/// What plans may spread over the ranks.
Bytes shardable(const CategoryBytes& sums) {
  return held(sums, Category::parameters) + held(sums, Category::adapter) + held(sums, Category::optimizer_state);
}

CategoryBytes held_at_end(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  CategoryBytes sums{};
  const auto run = dry_run(job, plan, rank);
  REQUIRE(run.has_value());
  for (const LiveAllocation& block : run->timeline.live_at(run->last_event))
    sums[static_cast<std::size_t>(block.label.category)] += Bytes{block.requested};
  return sums;
}

/// Jobs whose weights no plan casts.
std::vector<NamedJob> uncast_jobs() {
  std::vector<NamedJob> jobs{{"full", small_job(small_model(Family::qwen3))},
                             {"LoRA", small_lora_job(small_model(Family::llama))},
                             {"QLoRA", small_qlora_job(small_model(Family::olmo2))}};
  for (auto& [name, job] : jobs) {
    job.training.bf16 = false;
    if (job.quantization) job.adapter->dtype = DType::bfloat16;
  }
  return jobs;
}

std::vector<NamedPlan> sharding_plans() {
  return {{"fsdp1 with original parameters", Fsdp1{.use_orig_params = true}},
          {"fsdp1 with flat parameters", Fsdp1{.use_orig_params = false}},
          {"fsdp2", Fsdp2{}}};
}

}  // namespace

TEST_CASE("estimate/properties: a larger micro batch never takes less") {
  check_rises({1, 2, 3, 5, 8}, [](JobSpec& job, std::int64_t n) { job.training.micro_batch_size = n; });
}

TEST_CASE("estimate/properties: a longer sequence never takes less") {
  check_rises({8, 16, 24, 32, 96, 128, 136, 512}, [](JobSpec& job, std::int64_t n) { job.training.seq_len = n; });
}

TEST_CASE("estimate/properties: gradients that are reduced after every micro step never take more") {
  for (const NamedJob& sample : sample_jobs())
    for (const NamedPlan& plan : sample.job.plans) {
      // NO_SHARD goes on in float32 from a gradient that it has reduced in 16 bit.
      if (plan.name == "fsdp1-no-shard") continue;
      JobSpec job = sample.job;
      job.training.gradient_accumulation_steps = 2;
      const LedgerFigures kept = training_peak(job, plan.plan);
      job.training.sync_each_batch = true;
      CAPTURE(sample.name);
      CAPTURE(plan.name);
      CHECK(training_peak(job, plan.plan).requested <= kept.requested);
    }
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  job.training.gradient_accumulation_steps = 2;
  const auto peak = [&] { return training_peak(job, Fsdp1{}).requested; };
  const Bytes whole = peak();
  job.training.sync_each_batch = true;
  CHECK(peak() < whole);
  job.stack.transformers = {4, 57, 1};  // whose Trainer does not read it
  const Bytes unread = peak();
  job.training.sync_each_batch = false;
  CHECK(peak() == unread);
}

TEST_CASE("estimate/properties: a larger rank of the adapter never takes less") {
  check_rises({1, 2, 3, 4, 5, 8, 16, 64}, [](JobSpec& job, std::int64_t n) {
    if (job.adapter) job.adapter->r = n;
  });
}

TEST_CASE("estimate/properties: what is sharded is all there, and padding has a bound") {
  for (const NamedJob& sample : uncast_jobs())
    for (const NamedPlan& plan : sharding_plans())
      for (const std::int64_t world_size : {2, 3, 8, 64}) {
        JobSpec job = sample.job;
        job.cluster.world_size = world_size;
        CategoryBytes whole = persistent_state(job, Single{}, 0), all{};
        const auto ranks = static_cast<std::uint64_t>(world_size);
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          const CategoryBytes part = persistent_state(job, plan.plan, rank);
          for (std::size_t i = 0; i < all.size(); ++i) all[i] += part[i];
        }
        CAPTURE(sample.name);
        CAPTURE(plan.name);
        CAPTURE(world_size);
        CHECK(shardable(all) >= shardable(whole));
        CHECK(held(all, Category::quant_state) == held(whole, Category::quant_state) * ranks);
        // Less than a row for each rank and weight under FSDP2, whose optimizer does without; else what it takes to
        // start at 16 bytes and to divide by the ranks. A moment is padded like its weight. Buffers are whole.
        constexpr std::uint64_t kWidestRow = 524, kWeights = 90, kBuffers = 1024;
        CHECK(shardable(all) < shardable(whole) + Bytes{ranks * (3 * kWidestRow * kWeights + kBuffers)});
        const bool exact = std::holds_alternative<Fsdp2>(plan.plan) || std::get<Fsdp1>(plan.plan).use_orig_params;
        if (exact) CHECK(held(all, Category::optimizer_state) == held(whole, Category::optimizer_state));
      }
}

TEST_CASE("estimate/properties: the partitions of ZeRO add up to masters and moments in float32, padding apart") {
  for (const NamedJob& sample : uncast_jobs())
    for (const int stage : {1, 2})
      for (const std::int64_t world_size : {1, 2, 3, 8, 64}) {
        JobSpec job = sample.job;
        job.cluster.world_size = world_size;
        Bytes all;
        for (std::int64_t rank = 0; rank < world_size; ++rank)
          all += held(persistent_state(job, Zero{.stage = stage}, rank), Category::optimizer_state);
        CAPTURE(sample.name);
        CAPTURE(world_size);
        constexpr std::uint64_t kPerElement = 3 * 4, kGroups = 2;
        const Bytes exact{count_parameters(job).trainable * kPerElement};
        CHECK(all >= exact);
        CHECK(all < exact + Bytes{kGroups * 2 * static_cast<std::uint64_t>(world_size) * kPerElement});
      }
}

TEST_CASE("estimate/properties: one rank alone holds what is not sharded") {
  for (const NamedJob& sample : uncast_jobs())
    for (const ShardingPlan& plan : {ShardingPlan{Fsdp1{.use_orig_params = false}}, ShardingPlan{Fsdp2{}}}) {
      CAPTURE(sample.name);
      const JobSpec& job = sample.job;
      const CategoryBytes alone = held_at_end(job, plan, 0), single = held_at_end(job, Single{}, 0);
      for (const auto category : {Category::adapter, Category::optimizer_state, Category::quant_state})
        CHECK(held(alone, category) == held(single, category));
      // FSDP1 casts the rotary buffers to the dtype of a 4-bit base.
      if (!job.quantization || std::holds_alternative<Fsdp2>(plan))
        CHECK(held(alone, Category::parameters) == held(single, Category::parameters));
    }
}

TEST_CASE("estimate/properties: categories add up, and figures are in their order") {
  for_each_run([](const JobSpec&, const DryRun& run) {
    const RankReport report = rank_report(run, 0, true);
    const auto sum = [](const CategoryBytes& sums) { return std::accumulate(sums.begin(), sums.end(), Bytes{}); };
    // A block that waits for a stream is no longer allocated, but what was requested of it still counts, as in PyTorch.
    const bool waits = run.timeline.waits_for_streams();
    const auto ordered = [&](const LedgerFigures& f) {
      return f.requested <= (waits ? f.active : f.allocated) && f.allocated <= f.active && f.active <= f.reserved;
    };
    CHECK(sum(report.peak.categories) == report.peak.figures.allocated);
    CHECK(sum(report.training_peak.categories) == report.training_peak.figures.allocated);
    CHECK(sum(report.persistent_categories) == report.persistent.allocated);
    CHECK(ordered(report.peak.figures));
    CHECK(ordered(report.training_peak.figures));
    CHECK(ordered(report.persistent));
    CHECK(report.training_peak.figures.allocated <= report.peak.figures.allocated);
    for (const PhaseReport& phase : report.phases) {
      CAPTURE(phase.name);
      CHECK(sum(phase.categories) == phase.peak.allocated);
      CHECK(ordered(phase.peak));
      CHECK(ordered(phase.held));
      CHECK(phase.held.allocated <= phase.peak.allocated);
    }
  });
}

TEST_CASE("estimate/properties: a replay without limit is the run") {
  for_each_run([](const JobSpec& job, const DryRun& run) {
    const ReplayOutcome outcome = replay(run.timeline, job.allocator, CounterSource::kUnlimited);
    REQUIRE(outcome.runs());
    const LedgerFigures peak = rank_report(run, 0, false).peak.figures;
    CHECK(Bytes{outcome.stats.requested.peak} == peak.requested);
    CHECK(Bytes{outcome.stats.allocated.peak} == peak.allocated);
    CHECK(Bytes{outcome.stats.active.peak} == peak.active);
    CHECK(Bytes{outcome.stats.reserved.peak} == peak.reserved);
    CHECK(outcome.stats.allocated.current == run.end.allocated.current);
    CHECK(outcome.stats.reserved.current == run.end.reserved.current);
  });
}

TEST_CASE("estimate/properties: the least memory lies between what is allocated and what is reserved") {
  for_each_run([](const JobSpec& job, const DryRun& run) {
    const std::uint64_t least = least_memory(run.timeline, job.allocator);
    const LedgerFigures peak = rank_report(run, 0, false).peak.figures;
    CHECK(Bytes{least} >= peak.allocated);
    CHECK(Bytes{least} <= peak.reserved);
    CHECK(replay(run.timeline, job.allocator, least).runs());
  });
}

TEST_CASE("estimate/properties: the same job gives the same bytes") {
  for (const NamedJob& sample : sample_jobs()) {
    CAPTURE(sample.name);
    CHECK(report_json(estimate(sample.job), "test") == report_json(estimate(sample.job), "test"));
  }
}

}  // namespace qlp

#include "estimate/search.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "plan/catalogue.h"
#include "small_jobs.h"

using namespace qlp;

namespace {

/// Small layers, on a GPU that is small too, without margin.
JobSpec job_on(Bytes capacity, std::initializer_list<const char*> plans) {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.model.max_position_embeddings = 32768;
  job.cluster.gpu.capacity = capacity;
  job.cluster.margin = 0;
  job.cluster.world_size = 4;
  for (const char* name : plans) job.plans.push_back(*find_plan(name));
  return job;
}

/// On a GPU that all of the plans could use with sequences of 4096 tokens, and most with little more.
JobSpec tight_job(std::initializer_list<const char*> plans) {
  JobSpec job = job_on(Bytes{std::uint64_t{40} << 30}, plans);
  JobSpec longer = job;
  longer.training.seq_len = 4096;
  job.cluster.gpu.capacity = Bytes{};
  for (const PlanReport& plan : estimate(longer).plans)
    if (plan.applicable())
      job.cluster.gpu.capacity = std::max(job.cluster.gpu.capacity, plan.ranks.front().peak.device_used);
  return job;
}

bool fits_with(JobSpec job, const NamedPlan& plan, SearchKey key, std::int64_t value) {
  job.plans = {plan};
  if (key == SearchKey::micro_batch_size) job.training.micro_batch_size = value;
  if (key == SearchKey::seq_len) job.training.seq_len = value;
  if (key == SearchKey::r) job.adapter->r = value;
  if (key == SearchKey::world_size) job.cluster.world_size = value;
  return estimate(job).plans.front().fits;
}

}  // namespace

TEST_CASE("estimate/search: what is found fits, and its neighbour does not") {
  for (const char* name : {"single", "ddp", "fsdp2"}) {
    const JobSpec job = tight_job({name});
    for (const auto key : {SearchKey::micro_batch_size, SearchKey::seq_len}) {
      CAPTURE(name);
      const SearchReport report = search(job, {.key = key});
      const SearchedPlan& plan = report.plans.front();
      REQUIRE(plan.found);
      REQUIRE(plan.beyond);
      CHECK(fits_with(job, plan.plan, key, plan.found->value));
      CHECK_FALSE(fits_with(job, plan.plan, key, plan.beyond->value));
      CHECK(plan.beyond->value == plan.found->value + (key == SearchKey::seq_len ? 64 : 1));
      CHECK(plan.found->report.fits);
      CHECK_FALSE(plan.beyond->report.fits);
      CHECK(report.recommended == plan.plan.name);
    }
  }
}

TEST_CASE("estimate/search: the fewest GPUs are those below which it does not fit") {
  JobSpec job = job_on(Bytes{std::uint64_t{40} << 30}, {"ddp", "fsdp2"});
  job.adapter.reset();
  job.model.hidden_size = 768, job.model.intermediate_size = 4096, job.model.num_hidden_layers = 4;
  job.cluster.world_size = 3;
  const Report three = estimate(job);
  const auto fsdp2 = std::ranges::find(three.plans, "fsdp2", [](const PlanReport& p) { return p.plan.name; });
  job.cluster.gpu.capacity = fsdp2->ranks.front().peak.device_used;
  const SearchReport report = search(job, {.key = SearchKey::world_size, .most = 16});
  const SearchedPlan& best = report.plans.front();
  CHECK(best.plan.name == "fsdp2");
  REQUIRE(best.found);
  REQUIRE(best.beyond);
  CHECK(best.found->value <= 3);
  CHECK(best.beyond->value == best.found->value - 1);
  CHECK(report.resources->gpus == best.found->value);
  // Replicas do not become smaller where there are more of them.
  CHECK_FALSE(report.plans.back().found);
}

TEST_CASE("estimate/search: along a key each value is a search of its own") {
  const JobSpec job = tight_job({"fsdp2", "zero1"});
  const SearchOptions options{.key = SearchKey::micro_batch_size,
                              .along = SearchAlong{SearchKey::seq_len, {16, 32, 64}}};
  const SearchReport report = search(job, options);
  REQUIRE(report.plans.size() == 6);
  CHECK_FALSE(report.recommended);
  for (std::size_t at = 0; at < 6; ++at) {
    const SearchedPlan& plan = report.plans[at];
    CHECK(plan.plan.name == (at < 3 ? "fsdp2" : "zero1"));
    CHECK(plan.along == options.along->values[at % 3]);
    JobSpec alone = job;
    alone.plans = {plan.plan};
    alone.training.seq_len = *plan.along;
    const SearchReport same = search(alone, {.key = options.key});
    REQUIRE(plan.found);
    CHECK(plan.found->value == same.plans.front().found->value);
    if (at % 3 != 0) CHECK(plan.found->value <= report.plans[at - 1].found->value);
  }
}

TEST_CASE("estimate/search: values that are tried") {
  JobSpec job = job_on(Bytes{std::uint64_t{40} << 30}, {"fsdp2"});
  CHECK(search_values(job, SearchKey::seq_len).back() == 32768);
  CHECK(search_values(job, SearchKey::seq_len, 200) == std::vector<std::int64_t>{64, 128, 192});
  CHECK(search_values(job, SearchKey::r) == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64});
  job.cluster.gpus_per_node = 4;
  CHECK(search_values(job, SearchKey::world_size, 12) == std::vector<std::int64_t>{1, 2, 3, 4, 8, 12});
  job.cluster.mesh = {.tp = 2};
  CHECK(search_values(job, SearchKey::world_size, 12) == std::vector<std::int64_t>{2, 4, 8, 12});
  job.cluster.mesh = {.cp = 3};
  CHECK(search_values(job, SearchKey::seq_len, 400) == std::vector<std::int64_t>{192, 384});
}

TEST_CASE("estimate/search: a plan that never fits says what the first value lacks, one that cannot run why") {
  JobSpec job = tight_job({"fsdp2", "mistake:mixed-units"});
  job.cluster.gpu.capacity = Bytes{std::uint64_t{64} << 20};
  const SearchReport report = search(job, {});
  CHECK_FALSE(found_any(report));
  CHECK_FALSE(report.recommended);
  for (const SearchedPlan& plan : report.plans) {
    CHECK_FALSE(plan.found);
    REQUIRE(plan.beyond);
    CHECK(plan.beyond->value == 1);
    CHECK(lacking(plan.beyond->report).has_value() == plan.beyond->report.applicable());
  }
}

TEST_CASE("estimate/search: no value past the most is tried, and the end of the values is no verdict") {
  const JobSpec job = job_on(Bytes{std::uint64_t{40} << 30}, {"fsdp2"});
  const SearchReport report = search(job, {.key = SearchKey::micro_batch_size, .most = 5});
  CHECK(report.plans.front().found->value == 5);
  CHECK_FALSE(report.plans.front().beyond);
}

TEST_CASE("estimate/search: what keeps its cache is no larger, and does not give it back") {
  const JobSpec job = tight_job({"ddp", "fsdp2"});
  const SearchReport any = search(job, {}), kept = search(job, {.keeps_cache = true});
  for (const SearchedPlan& plan : kept.plans) {
    const auto same = [&](const SearchedPlan& other) { return other.plan.name == plan.plan.name; };
    const auto other = std::ranges::find_if(any.plans, same);
    REQUIRE(plan.found);
    CHECK_FALSE(plan.found->report.cache_given_back);
    CHECK(plan.found->value <= other->found->value);
  }
}

TEST_CASE("estimate/search: what cannot be searched is refused") {
  JobSpec job = job_on(Bytes{std::uint64_t{40} << 30}, {"fsdp2"});
  const auto refused = [&](SearchOptions options) { return search_refusal(job, options).has_value(); };
  CHECK_FALSE(refused({}));
  CHECK(refused({
      .key = SearchKey::seq_len,
      .along = SearchAlong{SearchKey::seq_len, {64}},
  }));
  CHECK(refused({.key = SearchKey::seq_len, .most = 63}));
  job.cluster.mesh = {.tp = 2};
  CHECK(refused({
      .key = SearchKey::seq_len,
      .along = SearchAlong{SearchKey::world_size, {3}},
  }));
  job.adapter.reset();
  CHECK(refused({.key = SearchKey::r}));
}

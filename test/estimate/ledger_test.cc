#include "estimate/ledger.h"

#include <doctest/doctest.h>

#include "estimate/outside_terms.h"

namespace qlp {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

ClusterSpec cluster_of(std::uint64_t capacity_mib, double margin) {
  ClusterSpec cluster;
  cluster.gpu.name = "a GPU of no catalogue";
  cluster.gpu.capacity = Bytes{capacity_mib * kMiB};
  cluster.margin = margin;
  return cluster;
}

PlanReport plan_of(NamedPlan plan, std::uint64_t allocated_mib, std::uint64_t reserved_mib) {
  PlanReport out;
  out.plan = std::move(plan);
  RankReport rank;
  rank.peak.figures.allocated = Bytes{allocated_mib * kMiB};
  rank.peak.figures.reserved = Bytes{reserved_mib * kMiB};
  out.ranks = {rank};
  out.outside = {{.name = "cuda_context", .bytes = Bytes{50 * kMiB}, .source = "test"}};
  return out;
}

const PeakReport& peak_of(const PlanReport& plan) { return plan.ranks.front().peak; }

}  // namespace

TEST_CASE("estimate/ledger: device_used and headroom are sums") {
  ClusterSpec cluster = cluster_of(1000, 0.02);
  cluster.used_by_others = Bytes{30 * kMiB};
  PlanReport plan = plan_of({"single", Single{}}, 600, 700);
  judge(plan, cluster, std::nullopt);
  CHECK(plan.fits);
  CHECK_FALSE(plan.cache_given_back);
  CHECK(peak_of(plan).device_used == Bytes{780 * kMiB});
  CHECK(peak_of(plan).capacity == Bytes{1000 * kMiB});
  CHECK(peak_of(plan).headroom == ByteDelta{200 * static_cast<std::int64_t>(kMiB)});
  CHECK(allocator_limit(cluster, plan.outside) == Bytes{900 * kMiB});
  CHECK_FALSE(needs_replay(peak_of(plan), cluster, plan.outside));
}

TEST_CASE("estimate/ledger: fits to the byte, and not beyond") {
  const ClusterSpec cluster = cluster_of(1000, 0);
  PlanReport plan = plan_of({"single", Single{}}, 600, 950);
  judge(plan, cluster, std::nullopt);
  CHECK(plan.fits);
  CHECK(peak_of(plan).headroom == ByteDelta{0});
  plan.ranks[0].peak.figures.reserved += Bytes{1};
  judge(plan, cluster, std::nullopt);
  CHECK_FALSE(plan.fits);
  CHECK(peak_of(plan).headroom == ByteDelta{-1});
}

TEST_CASE("estimate/ledger: managed memory takes what room there is, and decides nothing") {
  const ClusterSpec cluster = cluster_of(1000, 0.1);
  PlanReport plan = plan_of({"single", Single{}}, 600, 700);
  plan.outside.push_back(paged_optimizer_state(Bytes{100 * kMiB}));
  judge(plan, cluster, std::nullopt);
  CHECK(plan.fits);
  CHECK(peak_of(plan).device_used == Bytes{850 * kMiB});
  plan.outside.back() = paged_optimizer_state(Bytes{5000 * kMiB});
  judge(plan, cluster, std::nullopt);
  CHECK(plan.fits);
  CHECK_FALSE(plan.cache_given_back);
  CHECK(peak_of(plan).device_used == Bytes{900 * kMiB});
  CHECK(peak_of(plan).headroom == ByteDelta{0});
  CHECK(allocator_limit(cluster, plan.outside) == Bytes{850 * kMiB});
  plan.ranks[0].peak.figures.reserved = Bytes{851 * kMiB};
  judge(plan, cluster, std::nullopt);
  CHECK_FALSE(plan.fits);
  CHECK(peak_of(plan).device_used == Bytes{901 * kMiB});
}

TEST_CASE("estimate/ledger: between allocated and reserved a replay decides") {
  const ClusterSpec cluster = cluster_of(1000, 0);
  PlanReport plan = plan_of({"single", Single{}}, 600, 1200);
  CHECK(needs_replay(peak_of(plan), cluster, plan.outside));
  judge(plan, cluster, false);
  CHECK_FALSE(plan.fits);
  CHECK(plan.diagnostics.empty());
  judge(plan, cluster, true);
  CHECK(plan.fits);
  CHECK(plan.cache_given_back);
  REQUIRE(plan.diagnostics.size() == 1);
  CHECK(plan.diagnostics[0].code == "cache-given-back");

  // What it holds here is what it held in the replay.
  plan.ranks[0].peak.reserved_when_limited = Bytes{940 * kMiB};
  judge(plan, cluster, true);
  CHECK(plan.fits);
  CHECK(plan.cache_given_back);
  CHECK(peak_of(plan).device_used == Bytes{990 * kMiB});
  CHECK(peak_of(plan).device_used_freely() == Bytes{1250 * kMiB});
  CHECK(peak_of(plan).headroom == ByteDelta{10 * static_cast<std::int64_t>(kMiB)});

  const PlanReport hopeless = plan_of({"single", Single{}}, 960, 1200);
  CHECK_FALSE(needs_replay(peak_of(hopeless), cluster, hopeless.outside));
}

TEST_CASE("estimate/ledger: a node with too little host memory is no fit; where that is unknown, much is warned of") {
  ClusterSpec cluster = cluster_of(1000, 0);
  const auto judged = [&](std::uint64_t host_mib) {
    PlanReport plan = plan_of({"single", Single{}}, 600, 700);
    plan.host = HostReport{.rank0 = {},
                           .others = {},
                           .processes = 2,
                           .process = {},
                           .per_node = Bytes{host_mib * kMiB},
                           .per_node_phase = "load",
                           .page_cache = {}};
    judge(plan, cluster, std::nullopt);
    return plan;
  };
  CHECK(judged(2000).diagnostics.empty());
  const PlanReport unknown = judged(2001);
  CHECK(unknown.fits);
  REQUIRE(unknown.diagnostics.size() == 1);
  CHECK(unknown.diagnostics[0].code == "host-memory-unknown");

  cluster.host_memory = Bytes{1500 * kMiB};
  CHECK(judged(1500).fits);
  CHECK(judged(1500).diagnostics.empty());
  const PlanReport short_of = judged(1501);
  CHECK_FALSE(short_of.fits);
  REQUIRE(short_of.diagnostics.size() == 1);
  CHECK(short_of.diagnostics[0].code == "host-memory");
}

TEST_CASE("estimate/ledger: a searched requirement decides where no replay was made") {
  const ClusterSpec cluster = cluster_of(1000, 0);
  PlanReport plan = plan_of({"single", Single{}}, 600, 1200);
  plan.ranks[0].peak.required_reserved = Bytes{700 * kMiB};
  judge(plan, cluster, std::nullopt);
  CHECK(plan.fits);
  CHECK(peak_of(plan).required_device == Bytes{750 * kMiB});
  CHECK(peak_of(plan).headroom == ByteDelta{250 * static_cast<std::int64_t>(kMiB)});
}

TEST_CASE("estimate/ledger: the worst rank comes first and decides") {
  const ClusterSpec cluster = cluster_of(1000, 0);
  PlanReport plan = plan_of({"fsdp2", Fsdp2{}}, 600, 700);
  plan.ranks.push_back(plan.ranks[0]);
  plan.ranks[1].rank = 3;
  plan.ranks[1].peak.figures.reserved = Bytes{960 * kMiB};
  judge(plan, cluster, std::nullopt);
  CHECK_FALSE(plan.fits);
  CHECK(plan.ranks[0].rank == 3);
}

TEST_CASE("estimate/ledger: a device smaller than its overheads leaves nothing") {
  const ClusterSpec cluster = cluster_of(40, 0);
  PlanReport plan = plan_of({"single", Single{}}, 10, 20);
  CHECK(allocator_limit(cluster, plan.outside) == Bytes{});
  judge(plan, cluster, std::nullopt);
  CHECK_FALSE(plan.fits);
}

TEST_CASE("estimate/ledger: recommends the fastest among the plans that use all GPUs") {
  Report report;
  report.job.cluster = cluster_of(1000, 0);
  report.job.cluster.world_size = 4;
  const auto timed = [](PlanReport plan, double bound, double communication) {
    plan.step_time = StepTime{.lower_bound = bound, .terms = {.communication = communication}};
    return plan;
  };
  report.plans = {timed(plan_of({"single", Single{}}, 100, 100), 0.5, 0),
                  timed(plan_of({"fsdp1-full-shard", Fsdp1{}}, 200, 200), 1.5, 1.5),
                  timed(plan_of({"fsdp2", Fsdp2{}}, 150, 150), 1.5, 1.5),
                  timed(plan_of({"fsdp2-no-reshard", Fsdp2{.reshard_after_forward = false}}, 300, 300), 1.2, 1),
                  timed(plan_of({"ddp", Ddp{}}, 400, 400), 1.2001, 0.3)};  // a difference that is none
  for (const char* best : {"ddp", "fsdp2-no-reshard", "fsdp2", "fsdp1-full-shard", "single"}) {
    for (auto& plan : report.plans) judge(plan, report.job.cluster, std::nullopt);
    recommend(report);
    CHECK(report.recommended == best);
    REQUIRE(report.resources);
    CHECK(report.resources->gpus == (report.recommended == "single" ? 1 : 4));
    for (auto& plan : report.plans)
      if (plan.plan.name == best) plan.ranks[0].peak.figures.reserved = Bytes{2000 * kMiB};
  }
  REQUIRE(report.diagnostics.size() == 1);
  CHECK(report.diagnostics[0].code == "gpus-left-idle");
}

TEST_CASE("estimate/ledger: a difference that is none leaves the plans as the job has them") {
  Report report;
  report.job.cluster = cluster_of(10'000, 0);
  const auto timed = [](PlanReport plan, double communication) {
    plan.step_time = StepTime{.lower_bound = 1, .terms = {.communication = communication}};
    return plan;
  };
  const NamedPlan no_shard{"fsdp1-no-shard", Fsdp1{.sharding_strategy = ShardingStrategy::no_shard}};
  const auto best_of = [&](double communication, std::uint64_t reserved_mib) {
    report.plans = {timed(plan_of({"ddp", Ddp{}}, 1000, 2040), 0.1),
                    timed(plan_of(no_shard, 1000, reserved_mib), communication)};
    for (auto& plan : report.plans) judge(plan, report.job.cluster, std::nullopt);
    recommend(report);
    return *report.recommended;
  };
  CHECK(best_of(0.1, 2040) == "ddp");
  CHECK(best_of(0.0999, 2039) == "ddp");
  CHECK(best_of(0.09, 2040) == "fsdp1-no-shard");
  CHECK(best_of(0.1, 1900) == "fsdp1-no-shard");
}

TEST_CASE("estimate/ledger: a plan that keeps its cache is preferred") {
  Report report;
  report.job.cluster = cluster_of(1000, 0);
  report.job.cluster.world_size = 4;
  report.plans = {plan_of({"ddp", Ddp{}}, 700, 1100), plan_of({"fsdp2", Fsdp2{}}, 300, 400)};
  judge(report.plans[0], report.job.cluster, true);
  judge(report.plans[1], report.job.cluster, std::nullopt);
  recommend(report);
  CHECK(report.recommended == "fsdp2");
}

TEST_CASE("estimate/ledger: nothing is recommended where nothing fits") {
  Report report;
  report.job.cluster = cluster_of(1000, 0);
  report.plans = {plan_of({"single", Single{}}, 2000, 2000)};
  judge(report.plans[0], report.job.cluster, std::nullopt);
  recommend(report);
  CHECK_FALSE(report.recommended);
  CHECK_FALSE(report.resources);
}

TEST_CASE("estimate/ledger: resources count nodes and speak nvidia-smi's scale too") {
  Report report;
  report.job.cluster = cluster_of(1000, 0);
  report.job.cluster.gpu.name = "H100 SXM5 80GB";
  report.job.cluster.world_size = 12;
  report.plans = {plan_of({"ddp", Ddp{}}, 400, 500)};
  judge(report.plans[0], report.job.cluster, std::nullopt);
  recommend(report);
  REQUIRE(report.resources);
  CHECK(report.resources->nodes == 2);
  CHECK(report.resources->gpus_per_node == 8);
  CHECK(report.resources->gpu_memory == Bytes{550 * kMiB});
  CHECK(report.resources->gpu_memory_mib == 550 + 81559 - 81082);
}

}  // namespace qlp

#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/cpu_run.h"
#include "estimate/ordered_device.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

/// What one rank runs on, watched.
struct WatchedMachine {
  WatchedMachine(Machine& machine) : segments(*machine.source, order), kernels(*machine.compute.kernels, order) {
    machine.source = &segments, machine.compute.kernels = &kernels, machine.compute.streams = &order;
    if (machine.compute.communicator) {
      communicator = std::make_unique<test::OrderedCommunicator>(*machine.compute.communicator, order);
      machine.compute.communicator = communicator.get();
    }
    machine.events = EventPolicy::at_synchronize;
  }
  test::StreamOrder order;
  test::OrderedSegments segments;
  test::OrderedKernels kernels;
  std::unique_ptr<test::OrderedCommunicator> communicator;
};

/// All ranks of a plan; how many streams one of them used.
int check_order(const JobSpec& job, const ShardingPlan& plan) {
  std::vector<std::unique_ptr<WatchedMachine>> ranks(static_cast<std::size_t>(job.cluster.world_size));
  CpuRunOptions options{.learning_rate = 1e-2, .poisons = false};
  options.at_start = [&](std::int64_t rank, Machine& machine) {
    ranks[static_cast<std::size_t>(rank)] = std::make_unique<WatchedMachine>(machine);
  };
  const auto runs = run_on_cpu(job, plan, options);
  REQUIRE(runs);
  for (const auto& rank : ranks) {
    INFO(rank->order.first_hazard());
    CHECK(rank->order.hazards() == 0);
  }
  return ranks.front()->order.streams_used();
}

JobSpec watched_job() {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  job.training.num_steps = 3;
  job.training.gradient_accumulation_steps = 2;
  return job;
}

}  // namespace

TEST_CASE("estimate/stream_order: FSDP2's streams wait for each other wherever they share memory") {
  CHECK(check_order(watched_job(), Fsdp2{}) >= 3);
  CHECK(check_order(watched_job(), Fsdp2{.reshard_after_forward = false}) >= 3);
  CHECK(check_order(watched_job(), Fsdp2{.hybrid = true, .dp_shard_size = 2}) >= 3);
}

TEST_CASE("estimate/stream_order: FSDP1's streams wait for each other wherever they share memory") {
  for (const ShardingStrategy strategy : {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op,
                                          ShardingStrategy::no_shard, ShardingStrategy::hybrid_shard}) {
    CAPTURE(static_cast<int>(strategy));
    JobSpec job = watched_job();
    job.cluster.gpus_per_node = 2;  // what a hybrid strategy shards over
    check_order(job, Fsdp1{.sharding_strategy = strategy, .use_orig_params = true});
  }
  CHECK(check_order(watched_job(), Fsdp1{.use_orig_params = true}) >= 3);
}

TEST_CASE("estimate/stream_order: the streams of DDP and ZeRO wait for each other wherever they share memory") {
  check_order(watched_job(), Ddp{});
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    CHECK(check_order(watched_job(), Zero{.stage = stage, .reduce_bucket_size = 5000, .overlap_comm = true}) >= 2);
  }
}

}  // namespace qlp

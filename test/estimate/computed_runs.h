// Runs for real on the CPU, and what they are compared in.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/cpu_run.h"
#include "estimate/small_jobs.h"
#include "tensor/compute.h"

namespace qlp::test {

using Weights = std::map<std::string, std::vector<double>>;

/// All elements of a tensor, row by row.
inline std::vector<double> numbers_of(Context& ctx, const Tensor& tensor) {
  std::vector<double> out(static_cast<std::size_t>(tensor.numel()));
  const Array into{reinterpret_cast<std::byte*>(out.data()), DType::float64, tensor.shape(),
                   contiguous_strides(tensor.shape())};
  ctx.device.compute().host_kernels->unary(0, Unary::copy, into, array_of(tensor), 0, 0);
  return out;
}

struct ComputedRun {
  std::vector<DryRun> ranks;
  Weights weights;  ///< what was trained, whole, after the last step, from the first rank's state dict
};

inline ComputedRun compute_run(const JobSpec& job, const ShardingPlan& plan, double lr, bool even_routing = false) {
  ComputedRun out;
  CpuRunOptions options{.learning_rate = lr, .even_routing = even_routing};
  options.at_end = [&](std::int64_t rank, Context& ctx, CausalLm& model, ShardingRuntime& runtime) {
    const Scoped grad_mode(ctx.grad_enabled, false);
    // NO_SHARD has no gathering: parameters are whole everywhere.
    const auto* fsdp1 = std::get_if<Fsdp1>(&plan);
    const bool gathers = !fsdp1 || fsdp1->sharding_strategy != ShardingStrategy::no_shard;
    const StateDict state = gathers ? runtime.state_dict(ctx, model, rank == 0)
                                    : runtime.ShardingRuntime::state_dict(ctx, model, rank == 0);
    for (const StateDictEntry& entry : state.entries)
      if (rank == 0 && entry.parameter->trainable) out.weights[entry.parameter->name] = numbers_of(ctx, entry.tensor);
  };
  auto runs = run_on_cpu(job, plan, options);
  if (!runs)
    for (const Diagnostic& refusal : runs.error()) FAIL(refusal.message);
  out.ranks = std::move(*runs);
  return out;
}

/// The mean over the ranks.
inline double loss_of(const ComputedRun& run, std::size_t step) {
  double sum = 0;
  for (const DryRun& rank : run.ranks) sum += rank.steps.at(step).loss;
  return sum / static_cast<double>(run.ranks.size());
}

/// The greatest difference over the greatest value.
inline double distance(const Weights& a, const Weights& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, greatest = 0;
  for (const auto& [name, values] : a) {
    CAPTURE(name);
    const std::vector<double>& other = b.at(name);
    REQUIRE(values.size() == other.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference = std::max(difference, std::abs(values[i] - other[i]));
      greatest = std::max(greatest, std::abs(values[i]));
    }
  }
  return difference / greatest;
}

inline void check_same_peaks(const JobSpec& job, const ShardingPlan& plan, const DryRun& run, std::int64_t rank) {
  const auto dry = dry_run(job, plan, rank);
  REQUIRE(dry);
  REQUIRE(run.timeline.phases().size() >= dry->timeline.phases().size());
  CHECK(run.last_event == dry->last_event);
  for (std::size_t i = 0; i < dry->timeline.phases().size(); ++i) {
    const Phase &mine = run.timeline.phases()[i], &other = dry->timeline.phases()[i];
    CAPTURE(mine.name);
    if (other.name == "end") break;
    CHECK(mine.requested.bytes == other.requested.bytes);
    CHECK(mine.allocated.bytes == other.allocated.bytes);
    CHECK(mine.active.bytes == other.active.bytes);
    CHECK(mine.reserved.bytes == other.reserved.bytes);
  }
}

/// On `ranks` ranks, and the same batches on one.
inline JobSpec on_ranks(JobSpec job, std::int64_t ranks) {
  job.cluster.world_size = ranks;
  return job;
}
inline JobSpec on_one_rank(JobSpec job, std::int64_t replicas) {
  job.training.micro_batch_size *= replicas;
  job.cluster.world_size = 1, job.cluster.mesh = {};
  return job;
}

struct Tolerance {
  double loss = 1e-5, weights = 1e-5;
};

/// How a run is compared with that on one rank.
struct Comparison {
  std::int64_t replicas = 1;  ///< that have samples of their own
  Tolerance tolerance = {};
  double lr = 2e-2;
  bool even_routing = false;
  bool has_weights = true;  ///< the runtime gathers what was trained
  bool same_peaks = true;
};

/// The run has the losses, norms and weights of the run on one rank, and the memory of the dry run.
inline void check_equals_one_rank(const JobSpec& job, const ShardingPlan& plan, const Comparison& comparison) {
  const Tolerance& tolerance = comparison.tolerance;
  const bool even = comparison.even_routing;
  const ComputedRun sharded = compute_run(job, plan, comparison.lr, even);
  const ComputedRun whole = compute_run(on_one_rank(job, comparison.replicas), Single{}, comparison.lr, even);
  const auto steps = static_cast<std::size_t>(job.training.num_steps);
  for (std::size_t step = 0; step < steps; ++step) {
    CAPTURE(step);
    CHECK(loss_of(sharded, step) == doctest::Approx(loss_of(whole, step)).epsilon(tolerance.loss));
    const double norm = whole.ranks.front().steps[step].grad_norm;
    for (const DryRun& rank : sharded.ranks)
      CHECK(rank.steps[step].grad_norm == doctest::Approx(norm).epsilon(10 * tolerance.loss));
  }
  CHECK(loss_of(sharded, steps - 1) < loss_of(sharded, 0));
  if (comparison.has_weights) CHECK(distance(sharded.weights, whole.weights) < tolerance.weights);
  for (std::size_t rank = 0; rank < sharded.ranks.size() && comparison.same_peaks; ++rank)
    check_same_peaks(job, plan, sharded.ranks[rank], static_cast<std::int64_t>(rank));
}
/// The same where each rank has samples of its own.
inline void check_equals_unsharded(const JobSpec& job, const ShardingPlan& plan, const Tolerance& tolerance = {}) {
  check_equals_one_rank(job, plan, {.replicas = job.cluster.world_size, .tolerance = tolerance});
}

}  // namespace qlp::test

#include "estimate/cpu_run.h"

#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "estimate/can_compute.h"
#include "memory/host_segments.h"
#include "shard/loopback_communicator.h"
#include "shard/thread_communicator.h"
#include "tensor/cpu_kernels.h"

namespace qlp {
namespace {

/// What the threads leave behind.
class Outcome {
 public:
  explicit Outcome(std::size_t ranks) : runs_(ranks) {}

  void put(std::size_t index, Result<DryRun> run) { runs_[index] = std::move(run); }
  /// The first mistake counts: the others end because of it.
  void fail(std::exception_ptr mistake) {
    const std::lock_guard lock(mutex_);
    if (!mistake_) mistake_ = std::move(mistake);
  }
  Result<std::vector<DryRun>> take() {
    if (mistake_) std::rethrow_exception(mistake_);
    std::vector<DryRun> out;
    for (auto& run : runs_) {
      if (!*run) return Unexpected{run->error()};
      out.push_back(std::move(run->value()));
    }
    return out;
  }

 private:
  std::vector<std::optional<Result<DryRun>>> runs_;
  std::mutex mutex_;
  std::exception_ptr mistake_;
};

std::vector<std::int64_t> played_ranks(std::int64_t ranks, const std::optional<std::int64_t>& alone) {
  if (alone) return {*alone};
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

}  // namespace

Result<std::vector<DryRun>> run_on_cpu(const JobSpec& job, const ShardingPlan& plan, const CpuRunOptions& options) {
  if (auto refusals = check_can_compute(job, plan); !refusals.empty()) return Unexpected{std::move(refusals)};
  const std::int64_t ranks =
      std::holds_alternative<Single>(plan) ? job.cluster.mesh.ranks_of_replica() : job.cluster.world_size;
  ThreadHub hub(ranks);
  const std::vector<std::int64_t> played = played_ranks(ranks, options.alone);
  Outcome outcome(played.size());
  const auto run = [&](std::size_t index) {
    const std::int64_t rank = played[index];
    try {
      HostSegments segments(options.memory);
      CpuKernels kernels;
      ThreadCommunicator wire(hub, rank);
      LoopbackCommunicator loopback(kernels, rank);
      Communicator* const communicator = options.alone ? static_cast<Communicator*>(&loopback) : &wire;
      Machine machine{.source = &segments,
                      .compute = {&kernels, &kernels, ranks > 1 ? communicator : nullptr, options.poisons},
                      .seed = options.seed,
                      .learning_rate = options.learning_rate,
                      .even_routing = options.even_routing};
      if (options.on_phase) machine.on_phase = [&](const std::string& phase) { options.on_phase(rank, phase); };
      if (options.at_start) options.at_start(rank, machine);
      if (options.at_end)
        machine.at_end = [&](Context& ctx, CausalLm& model, ShardingRuntime& runtime) {
          options.at_end(rank, ctx, model, runtime);
        };
      Result<DryRun> result = run_rank(job, plan, rank, RunExtent::whole, machine);
      if (!result) hub.stop();
      outcome.put(index, std::move(result));
    } catch (const RankStopped&) {
      outcome.fail(std::current_exception());
    } catch (...) {
      outcome.fail(std::current_exception());
      if (options.on_failure) options.on_failure(rank, std::current_exception());
      hub.stop();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < played.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  return outcome.take();
}

}  // namespace qlp

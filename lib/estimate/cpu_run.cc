#include "estimate/cpu_run.h"

#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "estimate/can_compute.h"
#include "memory/host_segments.h"
#include "shard/thread_communicator.h"
#include "tensor/cpu_kernels.h"

namespace qlp {
namespace {

/// What the threads leave behind.
class Outcome {
 public:
  explicit Outcome(std::int64_t ranks) : runs_(static_cast<std::size_t>(ranks)) {}

  void put(std::int64_t rank, Result<DryRun> run) { runs_[static_cast<std::size_t>(rank)] = std::move(run); }
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

}  // namespace

Result<std::vector<DryRun>> run_on_cpu(const JobSpec& job, const ShardingPlan& plan, const CpuRunOptions& options) {
  if (auto refusals = check_can_compute(job, plan); !refusals.empty()) return Unexpected{std::move(refusals)};
  const std::int64_t ranks = std::holds_alternative<Single>(plan) ? 1 : job.cluster.world_size;
  ThreadHub hub(ranks);
  Outcome outcome(ranks);
  const auto run = [&](std::int64_t rank) {
    try {
      HostSegments segments;
      CpuKernels kernels;
      ThreadCommunicator communicator(hub, rank);
      Machine machine{.source = &segments,
                      .compute = {&kernels, &kernels, ranks > 1 ? &communicator : nullptr, options.poisons},
                      .seed = options.seed,
                      .learning_rate = options.learning_rate};
      if (options.at_start) options.at_start(rank, machine);
      if (options.at_end)
        machine.at_end = [&](Context& ctx, CausalLm& model, ShardingRuntime& runtime) {
          options.at_end(rank, ctx, model, runtime);
        };
      Result<DryRun> result = run_rank(job, plan, rank, RunExtent::whole, machine);
      if (!result) hub.stop();
      outcome.put(rank, std::move(result));
    } catch (const RankStopped&) {
      outcome.fail(std::current_exception());
    } catch (...) {
      outcome.fail(std::current_exception());
      hub.stop();
    }
  };
  std::vector<std::thread> threads;
  for (std::int64_t rank = 1; rank < ranks; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  return outcome.take();
}

}  // namespace qlp

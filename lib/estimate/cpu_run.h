// All ranks of a job for real on the CPU, as threads of this process.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimate/dry_run.h"

namespace qlp {

struct CpuRunOptions {
  std::uint64_t seed = 0;
  double learning_rate = 1e-3;
  /// Memory without an owner is overwritten with what is no number: a use after free shows in the losses.
  bool poisons = true;
  bool even_routing = false;                         ///< as Machine has it
  std::optional<std::int64_t> alone{};               ///< only this rank is played, on a wire that comes back to it
  std::uint64_t memory = CounterSource::kUnlimited;  ///< bytes of each rank's device
  /// Called on the thread of each rank as a phase begins, and with what it threw where it failed.
  std::function<void(std::int64_t rank, const std::string& phase)> on_phase{};
  std::function<void(std::int64_t rank, const std::exception_ptr& mistake)> on_failure{};
  /// Called on the thread of each rank before it begins: what it runs on may be watched.
  std::function<void(std::int64_t rank, Machine&)> at_start{};
  /// Called on the thread of each rank when all its steps are done.
  std::function<void(std::int64_t rank, Context&, CausalLm&, ShardingRuntime&)> at_end{};
};

/// One result for each rank that is played: one under `single`, else as many as the job's world has. Errors: what
/// cannot be computed yet, or what the plan or stack refuses. Throws what the first rank that fails throws, once all
/// have ended.
Result<std::vector<DryRun>> run_on_cpu(const JobSpec& job, const ShardingPlan& plan, const CpuRunOptions& options = {});

}  // namespace qlp

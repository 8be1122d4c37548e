// All ranks of a job for real on the CPU, as threads of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "estimate/dry_run.h"

namespace qlp {

struct CpuRunOptions {
  std::uint64_t seed = 0;
  double learning_rate = 1e-3;
  /// Memory without an owner is overwritten with what is no number: a use after free shows in the losses.
  bool poisons = true;
  /// Called on the thread of each rank before it begins: what it runs on may be watched.
  std::function<void(std::int64_t rank, Machine&)> at_start{};
  /// Called on the thread of each rank when all its steps are done.
  std::function<void(std::int64_t rank, Context&, CausalLm&, ShardingRuntime&)> at_end{};
};

/// One result for each rank: one under `single`, else as many as the job's world has. Errors: what cannot be computed
/// yet, or what the plan or stack refuses. Throws what the first rank that fails throws, once all have ended.
Result<std::vector<DryRun>> run_on_cpu(const JobSpec& job, const ShardingPlan& plan, const CpuRunOptions& options = {});

}  // namespace qlp

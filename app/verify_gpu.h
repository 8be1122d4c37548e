// The ranks of a run on GPUs: processes that this one starts and watches, by itself or beside others of its kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/arguments_of_runs.h"
#include "app/exit_code.h"
#include "base/result.h"
#include "verify/launch_environment.h"
#include "verify/prediction.h"
#include "verify/run_board.h"

namespace qlp::app {

struct GpuRun {
  SupervisedRun run;                     ///< of all ranks
  std::unique_ptr<RunBoard> board;       ///< where others wait for the verdict
  std::optional<ExitCode> told_verdict;  ///< rank 0 writes the report, and told how all end
};

/// `launched`: this process is for one rank of many. The error says what is missing: device code, a driver, GPUs.
Result<GpuRun, std::string> run_gpu_ranks(const VerifyArguments& arguments, const VerifyRequest& request,
                                          const std::optional<LaunchedRank>& launched,
                                          const std::function<void(const RankRecord&)>& on_state);

}  // namespace qlp::app

// verify --runner torch: the training program of a job, run by the libraries themselves.
#pragma once

#include <optional>
#include <string>

#include "app/arguments_of_runs.h"
#include "base/result.h"
#include "estimate/verification.h"
#include "verify/prediction.h"

namespace qlp::app {

struct TorchRun {
  SupervisedRun run;                 ///< one rank: the one that is played
  std::optional<ComparedPeak> peak;  ///< what was alive, where the probe could tell
};

/// Traces scripts/torch_runner.py with the request's job and plan on the null GPU, as one rank, on a checkpoint without
/// data. The error says what is missing here: an interpreter with the libraries, parts of the installation.
Result<TorchRun, std::string> run_torch_rank(const VerifyArguments& arguments, const VerifyRequest& request);

}  // namespace qlp::app

// This process as one rank of a run on GPUs, started by a launcher that is the same program.
#pragma once

#include <cstdint>

#include "app/arguments_of_runs.h"
#include "app/exit_code.h"
#include "verify/prediction.h"

namespace qlp::app {

/// The launcher is told everything else.
ExitCode run_as_rank(const VerifyRequest& request, const VerifyArguments& arguments, std::int64_t rank);

}  // namespace qlp::app

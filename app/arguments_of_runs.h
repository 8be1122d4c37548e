// What the commands take that run something: a job's own step, or a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/common_arguments.h"
#include "base/bytes.h"
#include "estimate/verification.h"

namespace qlp::app {

struct VerifyArguments {
  CommonArguments common;
  JobArguments job;
  VerifyDevice device = VerifyDevice::cuda;
  VerifyRunner runner = VerifyRunner::own;
  std::optional<std::string> python;  ///< the interpreter of runner torch
  std::int64_t steps = 2;
  std::optional<std::int64_t> rank;  ///< of --world-size: it is played alone
  std::optional<Tolerance> tolerance;
  std::int64_t timeout = 60;  ///< seconds
  std::optional<std::string> calibrate;
  std::optional<std::string> rendezvous;
  bool stamp = false;
  std::optional<std::int64_t> as_rank;  ///< this process is that rank, started by a launcher
};

struct TraceArguments {
  CommonArguments common;
  std::optional<std::string> gpu;
  std::optional<Bytes> memory;
  std::optional<double> margin;            ///< percent
  std::optional<std::int64_t> gpus;        ///< that the program sees
  std::optional<std::int64_t> world_size;  ///< of the one rank that is played
  std::int64_t rank = 0;
  std::int64_t steps = 0;            ///< 0: to the program's end
  std::int64_t timeout = 600;        ///< seconds without a sign of life
  std::vector<std::string> answers;  ///< WHAT=VALUE
  bool inventory = false;
  std::optional<std::string> snapshot;
  std::vector<std::string> program;  ///< and its arguments
};

}  // namespace qlp::app

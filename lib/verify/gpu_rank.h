// One rank of a run on GPUs: this process, on the first GPU that it sees.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "verify/prediction.h"
#include "verify/rank_channel.h"
#include "verify/supervisor.h"

namespace qlp {

struct GpuRankOptions {
  std::int64_t rank = 0;
  std::string library;  ///< libqlora_cuda.so (verify/gpu.h)
  std::chrono::milliseconds timeout{60'000};
  Clock clock;
};

/// Runs the step of the request and tells the launcher how far it is, then what was measured, or why there is nothing.
/// False where it could not finish.
bool run_gpu_rank(const VerifyRequest& request, const GpuRankOptions& options, RankChannel& channel);

}  // namespace qlp

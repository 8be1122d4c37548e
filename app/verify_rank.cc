#include "app/verify_rank.h"

#include <chrono>
#include <fcntl.h>

#include "app/clock.h"
#include "app/log.h"
#include "app/program_files.h"
#include "verify/gpu_rank.h"

namespace qlp::app {

ExitCode run_as_rank(const VerifyRequest& request, const VerifyArguments& arguments, std::int64_t rank) {
  if (fcntl(kRankChannel, F_GETFD) < 0) {
    log_error("--as-rank: a launcher starts ranks; use --gpus N");
    return ExitCode::bad_input;
  }
  RankChannel channel(kRankChannel);
  const GpuRankOptions options{.rank = rank,
                               .library = program_file(kCudaLibrary),
                               .timeout = std::chrono::seconds{arguments.timeout},
                               .clock = now};
  return run_gpu_rank(request, options, channel) ? ExitCode::fits : ExitCode::environment;
}

}  // namespace qlp::app

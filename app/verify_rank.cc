#include "app/verify_rank.h"

#include <chrono>
#include <fcntl.h>

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
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
  };
  const GpuRankOptions options{.rank = rank,
                               .library = program_file(kCudaLibrary),
                               .timeout = std::chrono::seconds{arguments.timeout},
                               .clock = now};
  return run_gpu_rank(request, options, channel) ? ExitCode::fits : ExitCode::environment;
}

}  // namespace qlp::app

#include "app/verify_gpu.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <unistd.h>

#include "app/clock.h"
#include "app/interruption.h"
#include "app/log.h"
#include "app/program_files.h"
#include "app/temporary_folder.h"
#include "trace/null_gpu.h"
#include "verify/gpu_driver.h"

namespace qlp::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// The GPUs that ranks may use, by the names that CUDA_VISIBLE_DEVICES has for them.
std::vector<std::string> visible_gpus(const Environment& environment, int count) {
  std::vector<std::string> names;
  const auto listed = environment.find("CUDA_VISIBLE_DEVICES");
  if (listed == environment.end()) {
    for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return names;
  }
  std::string rest = listed->second + ",";
  for (std::size_t comma = 0; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1))
    if (comma > 0) names.push_back(rest.substr(0, comma));
  return names;
}

/// The null GPU looks like the job's, unless the environment says what it looks like.
void add_null_gpu(Environment& environment, const GpuSpec& gpu, std::size_t count, const std::string& library) {
  const auto preload = environment.find("LD_PRELOAD");
  environment["LD_PRELOAD"] =
      library + (preload == environment.end() || preload->second.empty() ? "" : ":" + preload->second);
  environment.emplace("NULLGPU_LISTENS", "1");  // all ranks are here, or where rank 0 says
  environment.merge(null_gpu_variables({.gpu = gpu, .devices = static_cast<std::int64_t>(count), .taken = {}}));
}

/// This program as one rank.
std::vector<std::string> command_of(const VerifyArguments& arguments, const VerifyRequest& request, std::int64_t rank) {
  std::vector<std::string> words{executable_path(), "verify", arguments.job.file};
  const auto add = [&](const std::string& option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  add("--plan", request.plan.name);
  add("--device", std::string(name_of(request.device)));
  add("--steps", std::to_string(arguments.steps));
  add("--timeout", std::to_string(arguments.timeout));
  if (request.alone) add("--rank", std::to_string(*request.alone));
  add(request.alone ? "--world-size" : "--gpus", std::to_string(request.job.cluster.world_size));
  add("--as-rank", std::to_string(rank));
  return words;
}

/// What the ranks' programs need of this machine.
struct Site {
  Environment environment;
  std::vector<std::string> gpus;
};

/// The error says what is missing.
Result<Site, std::string> look_around(const VerifyRequest& request, std::size_t needed) {
  Site site{.environment = environment_of_process()};
  if (!fs::exists(program_file(kCudaLibrary)))
    return Unexpected{
        std::string{"this build has no device code: CUDA toolkit or NCCL were missing when it was built; "
                    "--device cpu runs small jobs without"}};
  if (request.device == VerifyDevice::null) {
    const std::string library = program_file(kNullGpuLibrary);
    if (!fs::exists(library)) return Unexpected{"the null GPU is missing: " + library};
    add_null_gpu(site.environment, request.job.cluster.gpu, needed, library);
    site.gpus = visible_gpus({}, static_cast<int>(needed));
    return site;
  }
  const auto count = count_gpus();
  if (!count) return Unexpected{count.error() + "; --device cpu runs small jobs without"};
  site.gpus = visible_gpus(site.environment, *count);
  const std::size_t usable = std::min(site.gpus.size(), static_cast<std::size_t>(*count));
  if (usable < needed)
    return Unexpected{"too few GPUs: " + std::to_string(needed) + " needed on this machine, " + std::to_string(usable) +
                      " visible"};
  return site;
}

std::vector<RankProgram> programs_of(const VerifyArguments& arguments, const VerifyRequest& request, const Site& site,
                                     const std::optional<LaunchedRank>& launched) {
  const std::vector<std::int64_t> ranks = launched ? std::vector{launched->rank} : ranks_of(request);
  std::vector<RankProgram> programs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Environment environment = site.environment;
    environment["CUDA_VISIBLE_DEVICES"] = site.gpus.at(launched ? static_cast<std::size_t>(launched->local_rank) : i);
    // On one machine NCCL needs no network.
    if (!launched) environment.emplace("NCCL_SOCKET_IFNAME", "lo");
    programs.push_back(
        {.rank = ranks[i],
         .program = {.arguments = command_of(arguments, request, ranks[i]), .environment = lines_of(environment)}});
  }
  return programs;
}

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int i = 0; i < 4; ++i) token += std::to_string(source()) + (i < 3 ? "-" : "");
  return token;
}

/// Where launchers meet on one node that were not told where.
std::string default_meeting(const LaunchedRank& launched) {
  const std::string run = launched.run.empty() ? std::to_string(getppid()) : launched.run;
  return (temporary_root() / ("qlora-plan-" + std::to_string(getuid())) / run).string();
}

/// After our ranks have ended: rank 0 hears of the others, the others hear the verdict.
void meet(GpuRun& out, const LaunchedRank& launched, milliseconds timeout) {
  RunBoard& board = *out.board;
  const bool failed =
      std::ranges::any_of(out.run.ranks, [](const RankRecord& r) { return r.end != RankEnd::finished; });
  const milliseconds began = now();
  for (;;) {
    board.exchange(out.run.ranks, failed);
    if (launched.rank == 0) {
      if (auto others = board.others()) {
        std::ranges::move(*others, std::back_inserter(out.run.ranks));
        return;
      }
    } else if (const auto verdict = board.verdict()) {
      out.told_verdict = static_cast<ExitCode>(*verdict);
      return;
    } else if (now() - began > timeout) {
      log_error("rank 0 gave no verdict within the timeout");
      out.told_verdict = ExitCode::environment;
      return;
    }
    std::this_thread::sleep_for(milliseconds{50});
  }
}

}  // namespace

Result<GpuRun, std::string> run_gpu_ranks(const VerifyArguments& arguments, const VerifyRequest& request,
                                          const std::optional<LaunchedRank>& launched,
                                          const std::function<void(const RankRecord&)>& on_state) {
  const std::size_t needed = launched ? static_cast<std::size_t>(launched->local_rank) + 1 : ranks_of(request).size();
  const auto site = look_around(request, needed);
  if (!site) return Unexpected{site.error()};
  const milliseconds timeout = std::chrono::seconds{arguments.timeout};
  GpuRun out;
  if (launched && launched->world_size > 1) {
    if (launched->local_size < launched->world_size && !arguments.rendezvous)
      return Unexpected{std::string{"ranks on several nodes need --rendezvous, a directory that all of them see"}};
    out.board = std::make_unique<RunBoard>(
        RunBoardOptions{.directory = arguments.rendezvous.value_or(default_meeting(*launched)),
                        .rank = launched->rank,
                        .world_size = launched->world_size,
                        .token = random_token(),
                        .timeout = timeout,
                        .clock = now});
  }
  const InterruptionNoted interruption;
  out.run = supervise(programs_of(arguments, request, *site, launched),
                      {.timeout = timeout,
                       .clock = now,
                       .interrupted = interruption_noted,
                       .on_state = on_state,
                       .on_output =
                           [](std::int64_t rank, std::string_view text) {
                             log_info("rank " + std::to_string(rank) + " wrote: " + std::string{text});
                           },
                       .remote = out.board.get()});
  if (out.board) meet(out, *launched, timeout);
  return out;
}

}  // namespace qlp::app

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "app/commands.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "app/program_files.h"
#include "app/progress.h"
#include "app/stamp.h"
#include "app/terminal.h"
#include "app/verify_gpu.h"
#include "app/verify_rank.h"
#include "app/verify_torch.h"
#include "base/text.h"
#include "config/file_reader.h"
#include "config/machine_file.h"
#include "estimate/can_compute.h"
#include "estimate/estimate.h"
#include "estimate/ledger.h"
#include "memory/timeline.h"
#include "report/report_json.h"
#include "report/verification_text.h"
#include "verify/calibrate.h"
#include "verify/cpu_ranks.h"
#include "verify/prediction.h"

namespace qlp::app {
namespace {

/// Our own step is what is predicted, to the byte; the libraries' is what is imitated.
Tolerance default_tolerance(const VerifyArguments& arguments) {
  return arguments.device == VerifyDevice::cuda || arguments.runner == VerifyRunner::torch ? Tolerance{.share = 0.01}
                                                                                           : Tolerance{};
}

/// The plan that was asked for, or the best one that can be computed as well as predicted.
NamedPlan plan_to_verify(const VerifyArguments& arguments, const JobSpec& job) {
  if (job.plans.size() == 1 || arguments.runner == VerifyRunner::torch) return plan_in_question(job);
  const Report all = estimate(job);
  const std::vector<const PlanReport*> ranked = best_first(all);
  const auto computed = std::ranges::find_if(ranked, [&](const PlanReport* report) {
    return report->applicable() && check_can_compute(job, report->plan.plan).empty();
  });
  if (computed == ranked.end()) return ranked.front()->plan;
  for (auto better = ranked.begin(); better != computed && (*better)->applicable(); ++better)
    log_warning("plan " + (*better)->plan.name + " ranks higher and cannot be run (--plan " + (*better)->plan.name +
                " says why)");
  return (*computed)->plan;
}

VerifyRequest request_of(const VerifyArguments& arguments, JobSpec job) {
  job.training.num_steps = arguments.steps;
  NamedPlan plan = plan_to_verify(arguments, job);
  job.plans = {plan};
  const bool shares = !std::holds_alternative<Single>(plan.plan) && job.cluster.world_size > 1;
  std::optional<std::int64_t> alone = arguments.rank;
  if (arguments.runner == VerifyRunner::torch && shares && !alone) alone = 0;
  return {.job = std::move(job),
          .plan = std::move(plan),
          .device = arguments.device,
          .alone = alone,
          .tolerance = arguments.tolerance.value_or(default_tolerance(arguments))};
}

/// What the command line asks for and cannot be had, whatever the job.
std::optional<std::string> mistake_in(const VerifyArguments& arguments, const std::optional<LaunchedRank>& launched) {
  if (launched && launched->world_size > 1 && arguments.device == VerifyDevice::cpu)
    return "--device cpu: its ranks are threads of one process, not started by " + launched->launcher;
  if (arguments.runner == VerifyRunner::torch && arguments.device != VerifyDevice::null)
    return "--runner torch traces with --device null; on GPUs start scripts/torch_runner.py with torchrun";
  if (arguments.runner == VerifyRunner::torch && (launched || arguments.calibrate))
    return "--runner torch plays one rank in a process of its own: no launcher, no --calibrate";
  if (arguments.python && arguments.runner != VerifyRunner::torch) return "--python goes with --runner torch";
  if (arguments.rank && *arguments.rank >= *arguments.job.gpus)
    return "--rank: expected 0 to " + std::to_string(*arguments.job.gpus - 1);
  if (arguments.calibrate && arguments.device == VerifyDevice::cpu)
    return "--calibrate: the CPU keeps no books of a GPU's memory";
  if (arguments.calibrate && arguments.rank) return "--calibrate: a rank that is played alone has no NCCL to measure";
  if (arguments.calibrate && same_file(*arguments.calibrate, arguments.job.file))
    return "--calibrate: the profile would overwrite the job file";
  return std::nullopt;
}

/// A run's phases are kept apart, so there can't be any number of steps; each has two for each micro batch, and two.
bool is_too_long(const TrainingSpec& training) {
  return training.num_steps > Timeline::kMostPhases / (2 * training.gradient_accumulation_steps + 2) - 1;
}

/// What Linux could give without swapping, none where it does not tell.
std::optional<Bytes> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kib = 0;
  for (std::string line; std::getline(file, line);)
    if (std::sscanf(line.c_str(), "MemAvailable: %lu kB", &kib) == 1) return Bytes{kib << 10U};
  return std::nullopt;
}

/// Why this machine cannot hold all ranks at once.
std::optional<std::string> too_small(const std::vector<RankPrediction>& predictions) {
  Bytes needed;
  for (const RankPrediction& prediction : predictions) {
    needed += prediction.report.peak.figures.reserved;
    Bytes host;
    for (const PhaseReport& phase : prediction.report.phases) host = std::max(host, phase.host_peak);
    needed += host;
  }
  const auto available = available_memory();
  if (!available || needed <= *available) return std::nullopt;
  return "the ranks take " + format_size(needed) + " together, and this machine has " + format_size(*available) +
         " left: verify a smaller job, or on GPUs";
}

/// Tells how far the slowest rank is.
class RankProgress {
 public:
  RankProgress(bool enabled, const std::vector<RankPrediction>& predictions) : progress_(enabled) {
    for (const RankPrediction& prediction : predictions) {
      done_[prediction.report.rank] = 0;
      of_ = prediction.report.phases.size();
    }
  }

  void show(const RankRecord& record) {
    log_info("rank " + std::to_string(record.rank) + ": " + record.state.what);
    done_[record.rank] = static_cast<std::size_t>(record.state.done);
    const auto slowest = std::ranges::min_element(done_, {}, [](const auto& entry) { return entry.second; });
    const std::size_t begun = std::min(slowest->second, of_);
    progress_.show(record.state.what, begun == 0 ? 0 : begun - 1, of_);
  }

 private:
  Progress progress_;
  std::map<std::int64_t, std::size_t> done_;
  std::size_t of_ = 0;
};

/// Writes the profile of the machine. Why there is none, where there is none.
std::optional<std::string> calibrate_to(const std::string& path, const SupervisedRun& run,
                                        const std::optional<Stamp>& stamp) {
  std::vector<RankMeasurement> measured;
  for (const RankRecord& record : run.ranks)
    if (record.measurement) measured.push_back(*record.measurement);
  std::optional<MachineProfile> before;
  if (DiskFiles{}.kind_of(path) != FileReader::Kind::missing) {
    auto known = read_machine_file(path);
    if (!known) return known.error().front().message + ": not overwritten, as it is no machine profile";
    before = std::move(*known);
  }
  auto profile = calibrate(measured, before);
  if (!profile) return profile.error();
  if (stamp) profile->time = stamp->time, profile->host = stamp->host;
  write_result(path, to_yaml(*profile));
  return std::nullopt;
}

ExitCode exit_code_of(const Verification& verification) {
  if (verification.interrupted) return ExitCode::interrupted;
  if (verification.within_tolerance()) return ExitCode::fits;
  return verification.finished() || verification.out_of_memory() ? ExitCode::nothing_fits : ExitCode::environment;
}

ExitCode write_report(const VerifyArguments& arguments, Report& report) {
  const CommonArguments& common = arguments.common;
  const bool json_on_stdout = common.json == "-";
  if (common.json) {
    const auto stamp = arguments.stamp ? std::optional{stamp_of(arguments.job.file)} : std::nullopt;
    write_result(*common.json, report_json(report, QLP_VERSION, stamp));
  }
  if (!json_on_stdout)
    write_stdout(verification_text(
        *report.verification,
        {.colors = use_colors(common.color, Stream::out), .brief = common.quiet, .verbose = common.verbose}));
  return exit_code_of(*report.verification);
}

ExitCode fail(const std::string& message, ExitCode code) {
  log_error(message);
  return code;
}

}  // namespace

ExitCode run_command(const VerifyArguments& arguments) {
  const CommonArguments& common = arguments.common;
  if (arguments.as_rank) {
    auto document = read_job_input(arguments.job, common);
    if (!document) return ExitCode::bad_input;
    return run_as_rank(request_of(arguments, document->job), arguments, *arguments.as_rank);
  }
  const auto launched = launched_rank(environment_of_process());
  if (!launched) {
    show_diagnostics(launched.error(), common);
    return ExitCode::bad_input;
  }
  if (const auto mistake = mistake_in(arguments, *launched)) return fail(*mistake, ExitCode::bad_input);
  JobArguments job = arguments.job;
  if (*launched && !job.gpus) job.gpus = (*launched)->world_size;
  auto document = read_job_input(job, common);
  if (!document) return ExitCode::bad_input;
  const VerifyRequest request = request_of(arguments, document->job);
  if (is_too_long(request.job.training))
    return fail("--steps: more steps, or micro batches in them, than can be told apart; run fewer",
                ExitCode::bad_input);
  const std::int64_t played = static_cast<std::int64_t>(ranks_of(request).size());
  if (*launched && played != (*launched)->world_size)
    return fail((*launched)->launcher + " started " + std::to_string((*launched)->world_size) + " ranks, and plan " +
                    request.plan.name + " runs " + std::to_string(played),
                ExitCode::bad_input);
  Report report = estimate(request.job, {.rank = arguments.rank.value_or(0)});
  if (!report.plans.front().applicable()) {
    show_diagnostics(report.plans.front().refusals, common);
    return fail("plan " + request.plan.name + " cannot run", ExitCode::nothing_fits);
  }
  const std::vector<RankPrediction> predictions = predict(request, ranks_of(request), report);
  SupervisedRun run;
  std::unique_ptr<RunBoard> board;
  std::optional<ComparedPeak> peak;
  if (arguments.runner == VerifyRunner::torch) {
    auto torch = run_torch_rank(arguments, request);
    if (!torch) return fail(torch.error(), ExitCode::environment);
    run = std::move(torch->run), peak = std::move(torch->peak);
  } else {
    RankProgress progress(is_terminal(Stream::err) && !common.quiet, predictions);
    const auto on_state = [&](const RankRecord& record) { progress.show(record); };
    if (request.device == VerifyDevice::cpu) {
      if (const auto reason = too_small(predictions)) return fail(*reason, ExitCode::environment);
      run = run_cpu_ranks(request, on_state);
    } else {
      auto gpus = run_gpu_ranks(arguments, request, *launched, on_state);
      if (!gpus) return fail(gpus.error(), ExitCode::environment);
      if (gpus->told_verdict) return *gpus->told_verdict;
      run = std::move(gpus->run);
      board = std::move(gpus->board);
    }
  }
  report.verification = verification_of(request, run, predictions);
  report.verification->runner = arguments.runner;
  report.verification->ranks.front().peak = std::move(peak);
  const ExitCode code = write_report(arguments, report);
  if (board) board->publish_verdict(static_cast<int>(code));
  if (arguments.calibrate && report.verification->finished()) {
    const auto stamp = arguments.stamp ? std::optional{stamp_of(arguments.job.file)} : std::nullopt;
    if (const auto reason = calibrate_to(*arguments.calibrate, run, stamp))
      return fail("--calibrate: " + *reason, ExitCode::environment);
  }
  return code;
}

}  // namespace qlp::app

// An unchanged training program on the null GPU.
#include <algorithm>
#include <filesystem>

#include "app/commands.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"
#include "app/traced_program.h"
#include "base/text.h"
#include "plan/gpu_catalogue.h"
#include "report/trace_table.h"

namespace qlp::app {
namespace {

constexpr std::string_view kDefaultGpu = "A100 SXM4 80GB";
constexpr std::int64_t kGpusPerNode = 8;

std::string what_gpu_may_be_meant(const std::string& name) {
  const auto several = gpus_like(name);
  const auto names = several.empty() ? gpu_names() : several;
  const std::vector<std::string_view> views{names.begin(), names.end()};
  if (!several.empty()) return "'" + name + "' may be " + join(views);
  const auto near = closest(name, views);
  return "no GPU of the catalogue is called '" + name + "'" +
         (near ? "; did you mean " + std::string{*near} + "?" : "");
}

std::optional<ClusterSpec> cluster_of(const TraceArguments& arguments) {
  const std::string name = arguments.gpu.value_or(std::string{kDefaultGpu});
  const auto gpu = find_gpu(name);
  if (!gpu) {
    log_error("--gpu: " + what_gpu_may_be_meant(name) + "; qlora-plan gpus lists them");
    return std::nullopt;
  }
  ClusterSpec cluster;
  cluster.gpu = *gpu;
  cluster.gpus_per_node = kGpusPerNode;
  cluster.world_size = arguments.world_size.value_or(1);
  if (arguments.memory) cluster.gpu.capacity = *arguments.memory, cluster.gpu.capacity_source = "--memory";
  if (arguments.margin) cluster.margin = *arguments.margin / 100;
  return cluster;
}

ProbeRequest request_of(const TraceArguments& arguments) {
  ProbeRequest request;
  request.steps = arguments.steps;
  request.world_size = arguments.world_size.value_or(0);
  request.rank = arguments.rank;
  request.gpus_per_node = kGpusPerNode;
  request.inventory = arguments.inventory;
  if (arguments.snapshot) request.snapshot = std::filesystem::absolute(*arguments.snapshot).string();
  for (const std::string& answer : arguments.answers) {
    const std::size_t at = answer.rfind('=');
    const std::size_t folder = answer.rfind('/', at);  // places go by the name of the file
    const std::size_t from = folder == std::string::npos ? 0 : folder + 1;
    request.answers[answer.substr(from, at - from)] = answer.substr(at + 1);
  }
  return request;
}

ExitCode exit_code_of(const TraceReport& report) {
  switch (report.outcome) {
    case TraceOutcome::ran:
      return report.fits ? ExitCode::fits : ExitCode::nothing_fits;
    case TraceOutcome::out_of_memory:
      return ExitCode::nothing_fits;
    case TraceOutcome::failed:
    case TraceOutcome::hung:
      return ExitCode::environment;
  }
  return ExitCode::internal;
}

void explain_failure(const TraceReport& report, const ProgramRun& run) {
  if (report.outcome == TraceOutcome::ran || report.outcome == TraceOutcome::out_of_memory) return;
  log_error("the program gave no answer: " + report.message);
  if (!run.output.empty()) write_stderr("its last lines:\n" + run.output + "\n");
}

}  // namespace

ExitCode run_command(const TraceArguments& arguments) {
  const CommonArguments& common = arguments.common;
  const auto cluster = cluster_of(arguments);
  if (!cluster) return ExitCode::bad_input;
  TracedProgram program{.command = arguments.program,
                        .cluster = *cluster,
                        .devices = arguments.gpus.value_or(std::min(cluster->world_size, kGpusPerNode)),
                        .played_rank = {},
                        .request = request_of(arguments),
                        .timeout = arguments.timeout};
  if (arguments.world_size) program.played_rank = arguments.rank;
  if (!common.quiet) write_stderr("on " + std::to_string(program.devices) + " null " + cluster->gpu.name + "\n");
  const auto outcome = run_traced_program(std::move(program));
  if (!outcome) return ExitCode::environment;
  const auto& [run, report] = *outcome;
  if (run.how == RunEnd::interrupted) return ExitCode::interrupted;

  explain_failure(report, run);
  if (common.json) write_result(*common.json, trace_json(report, QLP_VERSION));
  if (common.json != "-")
    write_stdout(trace_table(
        report, {.colors = use_colors(common.color, Stream::out), .brief = common.quiet, .verbose = common.verbose}));
  return exit_code_of(report);
}

}  // namespace qlp::app

// An unchanged training program on the null GPU.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "app/commands.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"
#include "base/text.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "plan/gpu_catalogue.h"
#include "report/trace_json.h"
#include "report/trace_table.h"
#include "trace/assemble.h"
#include "trace/environment.h"

namespace qlp::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultGpu = "A100 SXM4 80GB";
constexpr std::int64_t kGpusPerNode = 8;

volatile std::sig_atomic_t interrupt_asked = 0;
extern "C" void ask_interrupt(int /*signal*/) { interrupt_asked = 1; }

/// A folder for the records, gone with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "qlora-plan-trace-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw OutputError{"cannot make a folder in " + fs::temp_directory_path().string()};
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Beside the program: bin/qlora-plan and lib/qlora-plan, in the build tree and installed.
std::optional<TraceFiles> installed_files(const fs::path& request) {
  std::error_code none;
  const fs::path base = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "lib" / "qlora-plan";
  TraceFiles files{.library = base / "libqlora_nullgpu.so",
                   .driver = base / "nullgpu-driver",
                   .probe = base / "probe",
                   .request = request};
  for (const std::string& file : {files.library, files.probe + "/sitecustomize.py"})
    if (!fs::exists(file, none)) {
      log_error("this installation is not whole: no " + file);
      return std::nullopt;
    }
  return files;
}

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

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

/// Grows while the program's processes record phases.
std::uint64_t recorded_bytes(const fs::path& folder) {
  std::error_code none;
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const auto size = entry.file_size(none);
    if (!none) sum += size;
  }
  return sum;
}

std::vector<ProcessRecord> read_records(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<ProcessRecord> records;
  for (const fs::path& file : files) {
    std::ostringstream text;
    text << std::ifstream{file, std::ios::binary}.rdbuf();
    auto record = read_probe_record(text.str(), file.string());
    if (record) {
      records.push_back(std::move(*record));
    } else {
      log_warning("a record of the probe cannot be read: " + record.error().front().message);
    }
  }
  return records;
}

ProbeRequest request_of(const TraceArguments& arguments, const fs::path& folder) {
  ProbeRequest request;
  request.directory = folder.string();
  request.steps = arguments.steps;
  request.world_size = arguments.world_size.value_or(0);
  request.rank = arguments.rank;
  request.gpus_per_node = kGpusPerNode;
  request.inventory = arguments.inventory;
  if (arguments.snapshot) request.snapshot = fs::absolute(*arguments.snapshot).string();
  for (const std::string& answer : arguments.answers) {
    const std::size_t at = answer.rfind('=');
    request.answers[answer.substr(0, at)] = answer.substr(at + 1);
  }
  return request;
}

ProgramRun run_traced(const TraceArguments& arguments, Program program, const fs::path& folder) {
  using std::chrono::milliseconds;
  std::signal(SIGINT, ask_interrupt);
  std::signal(SIGTERM, ask_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  RunOptions options;
  options.patience = std::chrono::seconds{arguments.timeout};
  options.clock = [] {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
  };
  options.progress = [&] { return recorded_bytes(folder); };
  options.interrupted = [] { return interrupt_asked != 0; };
  options.on_output = [](std::string_view text) { write_stderr(text); };
  return run_program(std::move(program), options);
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
  const TemporaryFolder folder;
  const auto files = installed_files(folder.path() / "request.json");
  if (!files) return ExitCode::environment;
  write_result(files->request, probe_request_json(request_of(arguments, folder.path())));

  TraceSetup setup{.command = arguments.program, .cluster = *cluster, .played_rank = {}};
  if (arguments.world_size) setup.played_rank = arguments.rank;
  const NullGpu null_gpu{.gpu = cluster->gpu,
                         .devices = arguments.gpus.value_or(std::min(cluster->world_size, kGpusPerNode)),
                         .taken = sum(terms_outside(*cluster)) + margin_of(*cluster)};
  Program program{.arguments = arguments.program,
                  .environment = traced_environment(own_environment(), *files, null_gpu),
                  .directory = {},
                  .files = {}};
  if (!common.quiet) write_stderr("on " + std::to_string(null_gpu.devices) + " null " + cluster->gpu.name + "\n");
  const ProgramRun run = run_traced(arguments, std::move(program), folder.path());
  if (run.how == RunEnd::interrupted) return ExitCode::interrupted;

  const TraceReport report = assemble(setup, read_records(folder.path()), run);
  explain_failure(report, run);
  if (common.json) write_result(*common.json, trace_json(report, QLP_VERSION));
  if (common.json != "-")
    write_stdout(trace_table(
        report, {.colors = use_colors(common.color, Stream::out), .brief = common.quiet, .verbose = common.verbose}));
  return exit_code_of(report);
}

}  // namespace qlp::app

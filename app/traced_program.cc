#include "app/traced_program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/clock.h"
#include "app/log.h"
#include "app/output.h"
#include "app/program_files.h"
#include "app/temporary_folder.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "trace/environment.h"

namespace qlp::app {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t interrupt_asked = 0;
extern "C" void ask_interrupt(int /*signal*/) { interrupt_asked = 1; }

std::optional<TraceFiles> installed_files(const fs::path& request) {
  TraceFiles files{.library = program_file(kNullGpuLibrary),
                   .driver = program_file("nullgpu-driver"),
                   .probe = program_file("probe"),
                   .request = request};
  std::error_code none;
  for (const std::string& file : {files.library, files.probe + "/sitecustomize.py"})
    if (!fs::exists(file, none)) {
      log_error("this installation is not whole: no " + file);
      return std::nullopt;
    }
  return files;
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
  std::error_code none;  // the program may have removed it
  for (const auto& entry : fs::directory_iterator(folder, none))
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

ProgramRun run_to_end(Program program, std::int64_t timeout, const fs::path& folder) {
  std::signal(SIGINT, ask_interrupt);
  std::signal(SIGTERM, ask_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  ProgramOptions options;
  options.patience = std::chrono::seconds{timeout};
  options.clock = now;
  options.progress = [&] { return recorded_bytes(folder); };
  options.interrupted = [] { return interrupt_asked != 0; };
  options.on_output = [](std::string_view text) { write_stderr(text); };
  return run_program(std::move(program), options);
}

}  // namespace

std::optional<TracedOutcome> run_traced_program(TracedProgram traced) {
  const TemporaryFolder folder("trace");
  const auto files = installed_files(folder.path() / "request.json");
  if (!files) return std::nullopt;
  traced.request.directory = folder.path().string();
  write_result(files->request, probe_request_json(traced.request));
  const TraceSetup setup{.command = traced.command, .cluster = traced.cluster, .played_rank = traced.played_rank};
  const NullGpu null_gpu{.gpu = traced.cluster.gpu,
                         .devices = traced.devices,
                         .taken = sum(terms_outside(traced.cluster)) + margin_of(traced.cluster)};
  Program program{.arguments = std::move(traced.command),
                  .environment = lines_of(traced_environment(environment_of_process(), *files, null_gpu)),
                  .directory = {},
                  .files = {}};
  TracedOutcome out;
  out.run = run_to_end(std::move(program), traced.timeout, folder.path());
  out.report = assemble(setup, read_records(folder.path()), out.run);
  return out;
}

}  // namespace qlp::app

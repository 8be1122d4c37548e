#include "app/job_input.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "app/diagnostics.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"
#include "config/machine_file.h"
#include "estimate/estimate.h"
#include "estimate/ledger.h"
#include "plan/catalogue.h"

namespace qlp::app {
namespace {

/// The job's own plan of that name with its options, else the catalogue's with defaults.
NamedPlan chosen_plan(const JobSpec& job, const std::string& name) {
  const auto own = std::ranges::find(job.plans, name, &NamedPlan::name);
  return own != job.plans.end() ? *own : *find_plan(name);
}

}  // namespace

void show_diagnostics(const Diagnostics& diagnostics, const CommonArguments& common) {
  Diagnostics shown;
  for (const auto& d : diagnostics)
    if (d.severity == Severity::error || (d.severity == Severity::warning && !common.quiet) || common.verbose)
      shown.push_back(d);
  write_stderr(diagnostics_text(shown, use_colors(common.color, Stream::err)));
}

NamedPlan plan_in_question(const JobSpec& job) {
  if (job.plans.size() == 1) return job.plans.front();
  const Report all = estimate(job);
  return best_first(all).front()->plan;
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code none;
  return std::filesystem::equivalent(one, other, none);
}

bool is_input(const std::string& path, const JobArguments& job) {
  const auto is_it = [&](const std::optional<std::string>& input) { return input && same_file(path, *input); };
  return same_file(path, job.file) || is_it(job.machine) || is_it(job.model) || is_it(job.launch);
}

std::optional<JobDocument> read_job_input(const JobArguments& arguments, const CommonArguments& common) {
  if (common.json && is_input(*common.json, arguments)) {
    log_error("--json: the result would overwrite " + *common.json + ", which is read");
    return std::nullopt;
  }
  auto document = read_job_file(
      arguments.file,
      {.gpu = arguments.gpu, .model = arguments.model, .launch = arguments.launch, .world_size = arguments.gpus});
  Diagnostics errors = document ? Diagnostics{} : document.error();
  if (arguments.machine) {
    const auto machine = read_machine_file(*arguments.machine);
    Diagnostics more = !machine   ? machine.error()
                       : document ? use_machine(*document, *machine, *arguments.machine)
                                  : Diagnostics{};
    std::ranges::move(more, std::back_inserter(errors));
  }
  if (has_errors(errors)) {
    std::stable_partition(errors.begin(), errors.end(), [](const auto& d) { return d.severity == Severity::error; });
    show_diagnostics(errors, common);
    return std::nullopt;
  }
  JobSpec& job = document->job;
  if (arguments.plan) job.plans = {chosen_plan(job, *arguments.plan)};
  return std::move(*document);
}

}  // namespace qlp::app

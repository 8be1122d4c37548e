#include "app/commands.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "config/job_writer.h"
#include "estimate/estimate.h"
#include "report/export_accelerate.h"
#include "report/export_deepspeed.h"
#include "report/export_runner.h"
#include "report/export_scheduler.h"
#include "report/export_torch.h"

namespace qlp::app {
namespace {

/// `report` is of this plan alone; a job is written without either.
Result<std::string> exported(const JobSpec& job, const NamedPlan& plan, const Report& report, ExportFormat format) {
  switch (format) {
    case ExportFormat::accelerate:
      return accelerate_config(job, plan);
    case ExportFormat::deepspeed:
      return deepspeed_config(plan);
    case ExportFormat::runner:
      return runner_job(job, plan);
    case ExportFormat::slurm:
      return scheduler_request(Scheduler::slurm, report);
    case ExportFormat::kubernetes:
      return scheduler_request(Scheduler::kubernetes, report);
    case ExportFormat::htcondor:
      return scheduler_request(Scheduler::htcondor, report);
    case ExportFormat::torch:
      return torch_lists(job, plan);
    case ExportFormat::job:
      return to_yaml(job);
    case ExportFormat::torch_json:
      break;
  }
  return shard_map_json(job, plan);
}

}  // namespace

ExitCode run_command(const ExportArguments& arguments) {
  const CommonArguments& common = arguments.common;
  if (common.json && (arguments.format != ExportFormat::torch || arguments.output)) {
    log_error("--json is the form of --to torch, and names its own file: leave --to and -o out");
    return ExitCode::bad_input;
  }
  if (arguments.output && is_input(*arguments.output, arguments.job)) {
    log_error("--output: the result would overwrite " + *arguments.output + ", which is read");
    return ExitCode::bad_input;
  }
  auto document = read_job_input(arguments.job, common);
  if (!document) return ExitCode::bad_input;
  show_diagnostics(document->notes, common);
  if (arguments.format == ExportFormat::job) {  // all of it, whatever its plans come to
    write_result(arguments.output.value_or("-"), *exported(document->job, {}, {}, ExportFormat::job));
    return ExitCode::fits;
  }
  const NamedPlan plan = plan_in_question(document->job);
  if (!arguments.job.plan) log_info("exporting plan " + plan.name);
  JobSpec only = document->job;
  only.plans = {plan};
  const Report report = estimate(only);
  if (!report.plans.front().applicable()) {
    show_diagnostics(report.plans.front().refusals, common);
    return ExitCode::nothing_fits;
  }
  const ExportFormat format = common.json ? ExportFormat::torch_json : arguments.format;
  const auto text = exported(document->job, plan, report, format);
  if (!text) {
    show_diagnostics(text.error(), common);
    return ExitCode::nothing_fits;
  }
  write_result(arguments.output.value_or(common.json.value_or("-")), *text);
  return ExitCode::fits;
}

}  // namespace qlp::app

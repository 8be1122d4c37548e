#include "estimate/check.h"

#include <algorithm>

#include "app/commands.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"
#include "report/findings.h"
#include "report/report_json.h"

namespace qlp::app {
namespace {

void leave_out(std::vector<Finding>& findings, const std::vector<std::string>& codes) {
  std::erase_if(findings,
                [&](const Finding& finding) { return std::ranges::find(codes, finding.code) != codes.end(); });
}

}  // namespace

ExitCode run_command(const CheckArguments& arguments) {
  const CommonArguments& common = arguments.common;
  auto document = read_job_input(arguments.job, common);
  if (!document) return ExitCode::bad_input;
  JobSpec& job = document->job;
  if (arguments.budget) {
    job.cluster.gpu.capacity = *arguments.budget;
    job.cluster.gpu.capacity_source = "--budget";
    job.cluster.margin = 0;
  }
  show_diagnostics(document->notes, common);
  const NamedPlan plan = plan_in_question(job);
  if (!arguments.job.plan) log_info("checking plan " + plan.name);
  Report report = check(job, plan);
  leave_out(*report.findings, arguments.ignored);

  if (common.json) write_result(*common.json, report_json(report, QLP_VERSION));
  if (common.json != "-") write_stdout(findings_text(report, use_colors(common.color, Stream::out)));
  const Severity least = arguments.strict ? Severity::warning : Severity::error;
  const bool failed =
      std::ranges::any_of(*report.findings, [&](const Finding& finding) { return finding.severity >= least; });
  return failed ? ExitCode::nothing_fits : ExitCode::fits;
}

}  // namespace qlp::app

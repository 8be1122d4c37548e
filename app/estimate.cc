#include "estimate/estimate.h"

#include "app/commands.h"
#include "app/job_input.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/stamp.h"
#include "app/terminal.h"
#include "estimate/ledger.h"
#include "plan/catalogue.h"
#include "report/report_json.h"
#include "report/table.h"

namespace qlp::app {
ExitCode run_command(const EstimateArguments& arguments) {
  const CommonArguments& common = arguments.common;
  auto document = read_job_input(arguments.job, common);
  if (!document) return ExitCode::bad_input;

  if (arguments.mistakes)
    for (const Mistake& mistake : kMistakes) document->job.plans.push_back(*find_plan(mistake.name));

  Report report;
  {
    Progress progress{is_terminal(Stream::err) && !common.quiet};
    EstimateOptions options;
    options.required = arguments.required;
    options.on_progress = over_plans(progress);
    report = estimate(document->job, options);
  }
  report.diagnostics.insert(report.diagnostics.begin(), document->notes.begin(), document->notes.end());

  const bool json_on_stdout = common.json == "-";
  if (json_on_stdout) show_diagnostics(report.diagnostics, common);
  if (common.json) {
    const auto stamp = arguments.stamp ? std::optional{stamp_of(arguments.job.file)} : std::nullopt;
    write_result(*common.json, report_json(report, QLP_VERSION, stamp));
  }
  if (!json_on_stdout)
    write_stdout(report_table(
        report, {.colors = use_colors(common.color, Stream::out), .brief = common.quiet, .verbose = common.verbose}));
  return any_fits(report) ? ExitCode::fits : ExitCode::nothing_fits;
}

}  // namespace qlp::app

#include "report/explain.h"

#include "app/commands.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"
#include "estimate/dry_run.h"
#include "estimate/estimate.h"
#include "estimate/event_list.h"
#include "report/report_json.h"

namespace qlp::app {
ExitCode run_command(const ExplainArguments& arguments) {
  const CommonArguments& common = arguments.common;
  if (arguments.events && is_input(*arguments.events, arguments.job)) {
    log_error("--events: the list would overwrite " + *arguments.events + ", which is read");
    return ExitCode::bad_input;
  }
  auto document = read_job_input(arguments.job, common);
  if (!document) return ExitCode::bad_input;
  show_diagnostics(document->notes, common);

  if (arguments.rank && (*arguments.rank < 0 || *arguments.rank >= document->job.cluster.world_size)) {
    log_error("--rank: expected 0 to " + std::to_string(document->job.cluster.world_size - 1));
    return ExitCode::bad_input;
  }
  const std::string plan = plan_in_question(document->job).name;
  if (!arguments.job.plan) log_info("explaining plan " + plan);
  EstimateOptions options;
  options.only_plan = plan;
  options.phase_inventories = true;
  options.rank = arguments.rank.value_or(0);
  const Report report = estimate(document->job, options);

  if (arguments.events) {
    for (const NamedPlan& named : document->job.plans) {
      if (named.name != plan) continue;
      if (const auto run = dry_run(document->job, named.plan, options.rank))
        write_result(*arguments.events, event_list(*run));
    }
  }

  const auto text = explain_text(report, plan,
                                 {.phase = arguments.phase,
                                  .rank = arguments.rank,
                                  .top = static_cast<std::size_t>(arguments.top),
                                  .colors = use_colors(common.color, Stream::out)});
  if (!text) {
    show_diagnostics(text.error(), common);
    const bool answered = !report.plans.empty() && !report.plans.front().applicable();
    if (answered && common.json) write_result(*common.json, report_json(report, QLP_VERSION));
    return answered ? ExitCode::nothing_fits : ExitCode::bad_input;
  }
  if (common.json) write_result(*common.json, report_json(report, QLP_VERSION));
  if (common.json != "-") write_stdout(*text);
  return report.plans.front().fits ? ExitCode::fits : ExitCode::nothing_fits;
}

}  // namespace qlp::app

#include "estimate/search.h"

#include "app/commands.h"
#include "app/diagnostics.h"
#include "app/job_input.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "report/search_json.h"
#include "report/search_table.h"

namespace qlp::app {

ExitCode run_command(const SearchArguments& arguments) {
  const CommonArguments& common = arguments.common;
  auto document = read_job_input(arguments.job, common);
  if (!document) return ExitCode::bad_input;
  SearchOptions options{.key = arguments.key,
                        .along = arguments.along,
                        .most = arguments.most,
                        .keeps_cache = arguments.keeps_cache,
                        .on_progress = {}};
  if (const auto refusal = search_refusal(document->job, options)) {
    show_diagnostics({*refusal}, common);
    return ExitCode::bad_input;
  }
  SearchReport report;
  {
    Progress progress{is_terminal(Stream::err) && !common.quiet};
    options.on_progress = over_plans(progress);
    report = search(document->job, options);
  }
  report.diagnostics.insert(report.diagnostics.begin(), document->notes.begin(), document->notes.end());

  if (common.json == "-") show_diagnostics(report.diagnostics, common);
  if (common.json) write_result(*common.json, search_json(report, QLP_VERSION));
  if (common.json != "-")
    write_stdout(search_table(
        report, {.colors = use_colors(common.color, Stream::out), .brief = common.quiet, .verbose = common.verbose}));
  return found_any(report) ? ExitCode::fits : ExitCode::nothing_fits;
}

}  // namespace qlp::app

// What the program knows by heart: GPUs, models, its own report.
#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "report/gpus.h"
#include "report/models.h"
#include "report/report_schema.h"

namespace qlp::app {

ExitCode run_command(const GpusArguments& arguments) {
  const CommonArguments& common = arguments.common;
  if (common.json) {
    write_result(*common.json, gpus_json());
  } else {
    write_stdout(gpus_table(use_colors(common.color, Stream::out), common.verbose));
  }
  return ExitCode::fits;
}

ExitCode run_command(const ModelsArguments& arguments) {
  const auto& json = arguments.common.json;
  write_result(json.value_or("-"), json ? models_json() : models_text());
  return ExitCode::fits;
}

ExitCode run_command(const SchemaArguments& arguments) {
  write_result(arguments.common.json.value_or("-"), report_schema());
  return ExitCode::fits;
}

}  // namespace qlp::app

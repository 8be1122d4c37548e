#include <exception>

#include "app/commands.h"
#include "app/interruption.h"
#include "app/log.h"
#include "app/output.h"
#include "app/terminal.h"

namespace qlp::app {
namespace {

const CommonArguments& common_of(const Arguments& arguments) {
  return std::visit([](const auto& a) -> const CommonArguments& { return a.common; }, arguments);
}

ExitCode refuse(const UsageError& error) {
  start_log(LogLevel::normal, use_colors(ColorMode::automatic, Stream::err));
  for (const std::string& mistake : error.mistakes) log_error(mistake);
  write_stderr("Try '" + error.help + " --help'.\n");
  return ExitCode::bad_input;
}

ExitCode run_parsed(const Arguments& arguments) {
  const CommonArguments& common = common_of(arguments);
  const LogLevel level = common.quiet ? LogLevel::quiet : common.verbose ? LogLevel::verbose : LogLevel::normal;
  start_log(level, use_colors(common.color, Stream::err));
  try {
    return std::visit([](const auto& a) { return run_command(a); }, arguments);
  } catch (const OutputError& error) {
    log_error(error.message);
    return ExitCode::environment;
  } catch (const Interrupted&) {
    return ExitCode::interrupted;
  } catch (const std::exception& error) {
    log_error(std::string{"internal error, please report: "} + error.what());
    return ExitCode::internal;
  }
}

}  // namespace

ExitCode run(int argc, const char* const* argv) {
  const auto parsed = parse_arguments(argc, argv);
  if (const auto* error = std::get_if<UsageError>(&parsed)) return refuse(*error);
  if (const auto* arguments = std::get_if<Arguments>(&parsed)) return run_parsed(*arguments);
  try {
    write_stdout(std::get<Information>(parsed).text);
  } catch (const OutputError&) {
    return ExitCode::environment;
  }
  return ExitCode::fits;
}

}  // namespace qlp::app

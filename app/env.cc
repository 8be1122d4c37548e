// Python environments with the libraries of a stack: scripts/python_env.py, reached from the program.
#include "app/child_process.h"
#include "app/commands.h"
#include "app/embedded.h"
#include "app/job_input.h"
#include "app/log.h"
#include "app/output.h"
#include "app/stack_requirements.h"
#include "config/job_reader.h"

namespace qlp::app {
namespace {

bool is_job(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

/// Of a job file: its name without the folder and the ending.
std::string name_of_job(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

ExitCode run_command(const EnvArguments& arguments) {
  const bool creates = arguments.action == EnvAction::create;
  if (creates != arguments.stack.has_value()) {
    log_error(creates ? "env create needs the name of a stack, or a job file" : "env list takes no stack");
    return ExitCode::bad_input;
  }
  std::vector<std::string> command{arguments.python, "-c", std::string(python_env_script()),
                                   creates ? "create" : "list"};
  if (creates) {
    const std::string& stack = *arguments.stack;
    command.push_back(is_job(stack) ? name_of_job(stack) : stack);
    if (arguments.directory) command.push_back(*arguments.directory);
    if (is_job(stack)) {
      const auto document = read_job_file(stack);
      if (!document) {
        show_diagnostics(document.error(), arguments.common);
        return ExitCode::bad_input;
      }
      for (const std::string& requirement : stack_requirements(document->job.stack)) {
        command.emplace_back("--require");
        command.push_back(requirement);
      }
    }
  }
  if (arguments.common.json) command.emplace_back("--json");
  const auto answer = run_for_answer(std::move(command));
  if (!answer) {
    log_error(answer.error());
    return ExitCode::environment;
  }
  if (answer->end.succeeded()) write_result(arguments.common.json.value_or("-"), answer->output);
  if (answer->end.succeeded()) return ExitCode::fits;
  if (answer->end == ProgramEnd{.code = 2}) return ExitCode::bad_input;
  if (answer->end != ProgramEnd{.code = 3})  // with these two it has said why
    log_error(arguments.python + " ended with " + answer->end.text());
  return ExitCode::environment;
}

}  // namespace qlp::app

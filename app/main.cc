#include <csignal>
#include <cstdlib>

#include "app/commands.h"

namespace {

/// Files are written whole or not at all, so there is nothing to put away.
extern "C" void interrupted(int /*signal*/) { std::_Exit(static_cast<int>(qlp::app::ExitCode::interrupted)); }

}  // namespace

int main(int argc, char** argv) {
  if (std::signal(SIGINT, interrupted) == SIG_ERR) return static_cast<int>(qlp::app::ExitCode::environment);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing
  return static_cast<int>(qlp::app::run(argc, argv));
}

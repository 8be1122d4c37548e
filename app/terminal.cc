#include "app/terminal.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include "base/text.h"

namespace qlp::app {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace

bool is_terminal(Stream stream) { return isatty(stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO) != 0; }

bool use_colors(ColorMode mode, Stream stream) {
  if (mode != ColorMode::automatic) return mode == ColorMode::always;
  return is_terminal(stream) && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

std::string for_terminal(std::string_view text) { return harmless(text, "\t\n"); }

}  // namespace qlp::app

// Messages on stderr.
#pragma once

#include <cstdint>
#include <string_view>

namespace qlp::app {

enum class LogLevel : std::uint8_t { quiet, normal, verbose };

/// Before the first message: what is shown (quiet: errors only) and whether in colours.
void start_log(LogLevel level, bool colors);

void log_error(std::string_view message);
void log_warning(std::string_view message);
void log_info(std::string_view message);  ///< shown with -v

}  // namespace qlp::app

#include "app/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "app/terminal.h"

namespace qlp::app {
void start_log(LogLevel level, bool colors) {
  const auto mode = colors ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_st("qlora-plan", mode);
  logger->set_pattern("%n: %^%l%$: %v");
  logger->set_level(level == LogLevel::quiet     ? spdlog::level::err
                    : level == LogLevel::verbose ? spdlog::level::info
                                                 : spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

void log_error(std::string_view message) { spdlog::error("{}", for_terminal(message)); }
void log_warning(std::string_view message) { spdlog::warn("{}", for_terminal(message)); }
void log_info(std::string_view message) { spdlog::info("{}", for_terminal(message)); }

}  // namespace qlp::app

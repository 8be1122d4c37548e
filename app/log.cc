#include "app/log.h"

#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace qlp::app {
namespace {

/// Messages quote what they are about.
std::string shown(std::string_view message) { return harmless(message, "\t\n"); }

}  // namespace

void start_log(LogLevel level, bool colors) {
  const auto mode = colors ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_st("qlora-plan", mode);
  logger->set_pattern("%n: %^%l%$: %v");
  logger->set_level(level == LogLevel::quiet     ? spdlog::level::err
                    : level == LogLevel::verbose ? spdlog::level::info
                                                 : spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

void log_error(std::string_view message) { spdlog::error("{}", shown(message)); }
void log_warning(std::string_view message) { spdlog::warn("{}", shown(message)); }
void log_info(std::string_view message) { spdlog::info("{}", shown(message)); }

}  // namespace qlp::app

#include "app/progress.h"

#include <string>

#include "app/log.h"
#include "app/output.h"

namespace qlp::app {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::size_t kWidth = 24;

}  // namespace

void Progress::show(std::string_view doing, std::size_t done, std::size_t of) {
  if (!enabled_ || of == 0 || std::chrono::steady_clock::now() - start_ < std::chrono::seconds{1}) return;
  const std::size_t filled = kWidth * done / of;
  write_stderr(std::string{kEraseLine} + "[" + std::string(filled, '#') + std::string(kWidth - filled, ' ') + "] " +
               std::to_string(done) + "/" + std::to_string(of) + " " + std::string{doing});
  shown_ = true;
}

Progress::~Progress() {
  if (shown_) write_stderr(kEraseLine);
}

std::function<void(std::string_view plan, std::size_t done, std::size_t of)> over_plans(Progress& progress) {
  return [&progress](std::string_view plan, std::size_t done, std::size_t of) {
    log_info("plan " + std::string{plan});
    progress.show(plan, done, of);
  };
}

}  // namespace qlp::app

// A bar on stderr for work that takes longer than a second; on a terminal only.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

namespace qlp::app {

class Progress {
 public:
  explicit Progress(bool enabled) : enabled_(enabled) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `of` parts are done and `doing` comes next.
  void show(std::string_view doing, std::size_t done, std::size_t of);

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Shows each plan that is worked out, and logs it. `progress` must outlive what this gives.
std::function<void(std::string_view plan, std::size_t done, std::size_t of)> over_plans(Progress& progress);

}  // namespace qlp::app

// A bar on stderr for work that takes longer than a second; on a terminal only.
#pragma once

#include <chrono>
#include <cstddef>
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

}  // namespace qlp::app

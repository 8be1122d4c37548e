// A thread that looks at an amount again and again and keeps the most that it saw.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/bytes.h"

namespace qlp {

class PeakSampler {
 public:
  /// `read` is called on a thread of its own, none of whose exceptions count. Between two looks it waits.
  PeakSampler(std::function<Bytes()> read, std::chrono::milliseconds interval);
  ~PeakSampler() { stop(); }
  PeakSampler(const PeakSampler&) = delete;
  PeakSampler& operator=(const PeakSampler&) = delete;

  /// Looks once more, and ends. The most that was seen.
  Bytes stop();

 private:
  void look();
  void run();

  std::function<Bytes()> read_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Bytes peak_;
  std::thread thread_;
};

}  // namespace qlp

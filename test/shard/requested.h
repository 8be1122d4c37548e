// What is requested of a dry device, from what its recorder has written down.
#pragma once

#include <algorithm>
#include <cstdint>

#include "quant/recorder.h"

namespace qlp::test {

class Requested {
 public:
  explicit Requested(Recorder& recorder) : recorder_(&recorder) {}

  /// The most since the last call, in whole MiB.
  std::int64_t peak() {
    std::int64_t most = held_;
    for (const std::int64_t bytes : recorder_->take()) held_ += bytes, most = std::max(most, held_);
    return most / kMiB;
  }
  std::int64_t now() {
    peak();
    return held_ / kMiB;
  }

 private:
  static constexpr std::int64_t kMiB = 1 << 20;
  Recorder* recorder_;
  std::int64_t held_ = 0;
};

}  // namespace qlp::test

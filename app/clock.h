// How time goes by, for what waits and times out.
#pragma once

#include <chrono>

namespace qlp::app {

/// Of a clock that is never set.
inline std::chrono::milliseconds now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace qlp::app

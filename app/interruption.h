// What must be put away before an interruption is obeyed.
#pragma once

#include <csignal>

namespace qlp::app {

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted and not obeyed. One at a time.
class InterruptionNoted {
 public:
  InterruptionNoted();
  ~InterruptionNoted();
  InterruptionNoted(const InterruptionNoted&) = delete;
  InterruptionNoted& operator=(const InterruptionNoted&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3]{};
};

/// Whether one was noted since the last InterruptionNoted was made.
bool interruption_noted();

/// Thrown where work ends for it; the program ends with ExitCode::interrupted.
struct Interrupted {};

}  // namespace qlp::app

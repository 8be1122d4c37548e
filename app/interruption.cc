#include "app/interruption.h"

#include <iterator>

namespace qlp::app {
namespace {

volatile std::sig_atomic_t signalled = 0;  // NOLINT: all that a signal handler may touch
extern "C" void note_signal(int /*number*/) { signalled = 1; }

}  // namespace

InterruptionNoted::InterruptionNoted() {
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

InterruptionNoted::~InterruptionNoted() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool interruption_noted() { return signalled != 0; }

}  // namespace qlp::app

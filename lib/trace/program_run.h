// Runs a program of somebody else to its end: its output passes through, and a hang is ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/subprocess.h"

namespace qlp {

enum class RunEnd : std::uint8_t { not_started, ended, hung, interrupted };

struct ProgramRun {
  RunEnd how = RunEnd::not_started;
  ProgramEnd end;       ///< where it ended by itself
  std::string message;  ///< why it was not started
  std::string output;   ///< the last lines that it printed, on whichever stream
};

struct ProgramOptions {
  std::chrono::milliseconds patience{600'000};  ///< how long it may give no sign of life; 0: for ever
  std::chrono::milliseconds grace{3'000};       ///< from asking it to end to killing it
  std::function<std::chrono::milliseconds()> clock;
  std::function<std::uint64_t()> progress = [] { return std::uint64_t{0}; };  ///< changes while it gets on
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(std::string_view)> on_output = [](std::string_view) {};
};

/// Standard output and error of the program come as one; its input is ours. A hang is ended by SIGUSR2 (the probe's
/// processes then print where they are), SIGTERM and SIGKILL to all of its group.
ProgramRun run_program(Program program, const ProgramOptions& options);

}  // namespace qlp

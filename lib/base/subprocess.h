// A program that runs beside ours, in a process group of its own, and never outlives us.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace qlp {

/// How a program ended.
struct ProgramEnd {
  int code = 0;    ///< its exit status, where no signal ended it
  int signal = 0;  ///< the signal that ended it, 0 for none

  bool succeeded() const { return signal == 0 && code == 0; }
  std::string text() const;  ///< "exit status 3", "signal 9 (Killed)"
  friend bool operator==(const ProgramEnd&, const ProgramEnd&) = default;
};

/// An open file of ours, under the number by which the program knows it.
struct HandedFile {
  int number = 0;
  int ours = -1;
};

struct Program {
  std::vector<std::string> arguments;    ///< the first is the program: a path, or a name that PATH finds
  std::vector<std::string> environment;  ///< all of it, "NAME=value" each
  std::string directory;                 ///< where it runs; empty: where we do
  /// Files that it gets; of standard input, output and error those that are not listed are /dev/null.
  std::vector<HandedFile> files;
};

/// It and all that descends from it are killed and waited for when it goes out of scope, and killed when the thread
/// that started it dies, in whatever way (process_keeper.h).
class Subprocess {
 public:
  /// The error says why it could not be started.
  static Result<Subprocess, std::string> start(const Program& program);

  Subprocess(Subprocess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), end_(other.end_) {}
  Subprocess& operator=(Subprocess&&) = delete;
  ~Subprocess();

  pid_t pid() const { return pid_; }  ///< of its keeper
  /// How it ended, none while it runs. What it left behind is dead by then.
  std::optional<ProgramEnd> poll();
  /// To the program and all that it started in its group, while it runs.
  void send(int signal);
  /// Kills the program and all that descends from it, and waits for them.
  ProgramEnd kill();

 private:
  explicit Subprocess(pid_t pid) : pid_(pid) {}
  ProgramEnd reap();

  pid_t pid_ = -1;
  std::optional<ProgramEnd> end_;
};

}  // namespace qlp

// The rank's end of the line to its launcher.
#pragma once

#include <chrono>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "verify/rank_message.h"

namespace qlp {

class RankChannel {
 public:
  /// `file`: a stream socket, kRankChannel in a program that a launcher started.
  explicit RankChannel(int file) : file_(file) {}

  /// False where the launcher is gone: the rank should end.
  bool tell(const RankMessage& message);
  /// Waits for what rank 0 told its launcher. The error says that the launcher is gone, talks nonsense, or was late.
  Result<Rendezvous, std::string> wait_for_rendezvous(std::chrono::milliseconds timeout);

 private:
  FileDescriptor file_;
  LineBuffer lines_;
};

}  // namespace qlp

// The ranks of one machine as processes: started together, watched, and ended together whatever becomes of one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "verify/rank_message.h"

namespace qlp {

/// Time that only goes forward, from any beginning.
using Clock = std::function<std::chrono::milliseconds()>;

/// The file under which a rank's program finds its launcher (verify/rank_channel.h).
inline constexpr int kRankChannel = 3;

struct RankProgram {
  std::int64_t rank = 0;
  Program program;  ///< gets its channel, and output and error that are kept for the report
};

/// What is known of a rank.
struct RankRecord {
  std::int64_t rank = 0;
  RankEnd end = RankEnd::stopped;
  RankState state{.what = "start"};  ///< the last that it told
  std::string message;               ///< why it did not finish
  std::string output;                ///< the last that it wrote
  std::optional<RankMeasurement> measurement;
};

/// Ranks that other launchers watch, on other machines.
class RemoteRanks {
 public:
  virtual ~RemoteRanks() = default;
  /// Called often: tells them how ours are doing, and hears of theirs.
  virtual void exchange(const std::vector<RankRecord>& ours, bool failed) = 0;
  /// Why the run cannot go on, none while it can.
  virtual std::optional<std::string> failure() const = 0;
  virtual void publish(const Rendezvous& rendezvous) = 0;
  /// What rank 0 published, once it is there.
  virtual std::optional<Rendezvous> rendezvous() = 0;
};

struct SupervisorOptions {
  std::chrono::milliseconds timeout{60'000};  ///< a rank that tells nothing for longer hangs
  std::chrono::milliseconds settle{300};      ///< after a first failure: for the others to tell theirs
  std::chrono::milliseconds grace{2'000};     ///< from asking a rank to end to killing it
  Clock clock;
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const RankRecord&)> on_state = [](const RankRecord&) {};
  std::function<void(std::int64_t rank, std::string_view text)> on_output = [](std::int64_t, std::string_view) {};
  RemoteRanks* remote = nullptr;
};

struct SupervisedRun {
  std::vector<RankRecord> ranks;  ///< in the order of the programs
  bool interrupted = false;
};

/// Runs the programs to their end. When it returns none of them, nor anything that they started, is left. A first
/// failure (an end without a result, a failure told, silence, an interruption) ends all.
SupervisedRun supervise(const std::vector<RankProgram>& programs, const SupervisorOptions& options);

}  // namespace qlp

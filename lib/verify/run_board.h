// Launchers of one run on several machines, or started one for each rank, meet in a directory that all of them see.
//
// Every launcher has a file there, which it replaces whole; rank 0 calls the roll. Files of earlier runs may lie there:
// a launcher makes up a token of its own, rank 0 lists the tokens that it found, and who does not find its own among
// them knows that rank 0 has not seen it yet. Rank 0 reads all files, the others only its.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/supervisor.h"

namespace qlp {

struct RunBoardOptions {
  std::string directory;  ///< is made where it does not exist
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::string token;                          ///< random, of this launcher
  std::chrono::milliseconds timeout{60'000};  ///< for others to come, and to show that they live
  Clock clock;
};

class RunBoard final : public RemoteRanks {
 public:
  explicit RunBoard(RunBoardOptions options);

  void exchange(const std::vector<RankRecord>& ours, bool failed) override;
  std::optional<std::string> failure() const override { return failure_; }
  void publish(const Rendezvous& rendezvous) override { rendezvous_ = rendezvous; }
  std::optional<Rendezvous> rendezvous() override { return rendezvous_; }

  /// What became of the others' ranks, once ours have ended (rank 0). Called until it gives them: when all are final,
  /// or the timeout is over, where those that are not have died.
  std::optional<std::vector<RankRecord>> others();
  /// Rank 0's last word: how the program ends.
  void publish_verdict(int exit_status);
  /// The others wait for it, polling: so none ends before the report is written.
  std::optional<int> verdict() const { return verdict_; }

 private:
  /// Another launcher, as its file shows it.
  struct Peer {
    std::string token;
    std::int64_t sequence = -1;
    std::chrono::milliseconds changed{0};
    bool joined = false;  ///< it is of this run, and knows so
    bool final = false;
    RankRecord record;
  };

  std::string path(const std::string& name) const { return options_.directory + "/" + name; }
  void write();
  void give_up(const std::string& reason);
  void read_rank0();
  void read_all();
  void read_peer(std::int64_t rank, Peer& peer);
  void look_for_silence();

  RunBoardOptions options_;
  std::chrono::milliseconds began_, last_{-1'000'000};
  std::string run_;  ///< rank 0's token, once this launcher is on its roll
  std::map<std::int64_t, Peer> peers_;
  std::vector<RankRecord> ours_;
  bool failed_ = false;
  std::int64_t sequence_ = 0;
  std::optional<Rendezvous> rendezvous_;
  std::optional<std::string> failure_;
  std::optional<int> verdict_;
};

}  // namespace qlp

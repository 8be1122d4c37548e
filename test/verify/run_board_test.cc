#include "verify/run_board.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <doctest/doctest.h>

#include "verify/sample_measurement.h"

namespace qlp {
namespace {

using std::chrono::milliseconds;

/// Launchers that take turns on a clock that only the test moves.
class Meeting {
 public:
  explicit Meeting(std::int64_t ranks) : ranks_(ranks) {
    folder_ = std::filesystem::temp_directory_path() / ("qlp-board-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  ~Meeting() { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RunBoard> launcher(std::int64_t rank, const std::string& token) const {
    return std::make_unique<RunBoard>(RunBoardOptions{.directory = folder_.string(),
                                                      .rank = rank,
                                                      .world_size = ranks_,
                                                      .token = token,
                                                      .timeout = milliseconds{10'000},
                                                      .clock = [this] { return now_; }});
  }
  void wait(milliseconds span) { now_ += span; }
  std::filesystem::path file(std::int64_t rank) const { return folder_ / ("rank-" + std::to_string(rank) + ".json"); }

 private:
  std::int64_t ranks_;
  std::filesystem::path folder_;
  milliseconds now_{5};
};

RankRecord busy(std::int64_t rank) { return {.rank = rank, .state = {.what = "load"}}; }

RankRecord finished(std::int64_t rank) {
  RankRecord record = busy(rank);
  record.end = RankEnd::finished;
  record.measurement = sample_measurement();
  return record;
}

TEST_CASE("verify/run_board: launchers find each other, share the rendezvous, and end together") {
  Meeting meeting(2);
  auto one = meeting.launcher(1, "b");
  auto zero = meeting.launcher(0, "a");
  zero->publish({.id = "where"});
  for (int i = 0; i < 3; ++i) {
    one->exchange({busy(1)}, false);
    zero->exchange({busy(0)}, false);
    meeting.wait(milliseconds{200});
  }
  CHECK(one->rendezvous() == Rendezvous{.id = "where"});
  CHECK_FALSE(zero->failure());
  CHECK_FALSE(zero->others());
  one->exchange({finished(1)}, false);
  meeting.wait(milliseconds{200});
  zero->exchange({finished(0)}, false);
  const auto others = zero->others();
  REQUIRE(others);
  REQUIRE(others->size() == 1);
  CHECK(others->front().rank == 1);
  CHECK(others->front().end == RankEnd::finished);
  CHECK(others->front().measurement == sample_measurement());
  CHECK_FALSE(one->verdict());
  zero->publish_verdict(1);
  meeting.wait(milliseconds{200});
  one->exchange({finished(1)}, false);
  CHECK(one->verdict() == 1);
}

TEST_CASE("verify/run_board: files of an earlier run mislead nobody") {
  Meeting meeting(2);
  {
    auto zero = meeting.launcher(0, "old a");
    auto one = meeting.launcher(1, "old b");
    zero->publish({.id = "old"});
    for (int i = 0; i < 3; ++i) {
      one->exchange({finished(1)}, false);
      zero->exchange({finished(0)}, false);
      meeting.wait(milliseconds{200});
    }
    REQUIRE(zero->others());
    zero->publish_verdict(0);
  }
  auto zero = meeting.launcher(0, "a");
  auto one = meeting.launcher(1, "b");
  one->exchange({busy(1)}, false);  // sees only what is old
  CHECK_FALSE(one->rendezvous());
  CHECK_FALSE(one->verdict());
  std::filesystem::copy(meeting.file(1), meeting.file(1).string() + ".kept");
  zero->exchange({busy(0)}, false);
  CHECK_FALSE(zero->others());
  zero->publish({.id = "new"});
  for (int i = 0; i < 3; ++i) {
    meeting.wait(milliseconds{200});
    zero->exchange({busy(0)}, false);
    one->exchange({busy(1)}, false);
  }
  CHECK(one->rendezvous() == Rendezvous{.id = "new"});
  CHECK_FALSE(zero->others());
}

TEST_CASE("verify/run_board: a rank that fails ends the others, and its words arrive") {
  Meeting meeting(3);
  auto zero = meeting.launcher(0, "a"), one = meeting.launcher(1, "b"), two = meeting.launcher(2, "c");
  const auto turn = [&](const RankRecord& last, bool failed) {
    zero->exchange({busy(0)}, false);
    one->exchange({busy(1)}, false);
    two->exchange({last}, failed);
    meeting.wait(milliseconds{200});
  };
  for (int i = 0; i < 3; ++i) turn(busy(2), false);
  RankRecord dead = busy(2);
  dead.end = RankEnd::died, dead.message = "signal 9 (Killed)", dead.output = "last words";
  for (int i = 0; i < 3; ++i) turn(dead, true);
  CHECK(zero->failure() == "rank 2 has ended");
  CHECK(one->failure() == "another rank has ended");
  one->exchange({busy(1)}, true);
  meeting.wait(milliseconds{200});
  zero->exchange({busy(0)}, true);
  const auto others = zero->others();
  REQUIRE(others);
  CHECK(others->at(1).end == RankEnd::died);
  CHECK(others->at(1).message == "signal 9 (Killed)");
  CHECK(others->at(1).output == "last words");
  CHECK(others->at(0).end == RankEnd::stopped);
}

TEST_CASE("verify/run_board: whoever does not come, or falls silent, is missed after the timeout") {
  Meeting meeting(2);
  auto zero = meeting.launcher(0, "a");
  SUBCASE("never came") {
    meeting.wait(milliseconds{11'000});
    zero->exchange({busy(0)}, false);
    CHECK(zero->failure() == "rank 1 did not come");
    CHECK(zero->others()->front().end == RankEnd::communicator_failed);
  }
  SUBCASE("left only a file of another run") {
    std::ofstream(meeting.file(1)) << R"({"token": "x", "run": "y", "sequence": 4})"
                                   << "\n";
    meeting.wait(milliseconds{11'000});
    zero->exchange({busy(0)}, false);
    CHECK(zero->failure()->find("rank 1 did not come (a file of another run lies in ") == 0);
  }
  SUBCASE("fell silent") {
    auto one = meeting.launcher(1, "b");
    for (int i = 0; i < 3; ++i) {
      one->exchange({busy(1)}, false);
      zero->exchange({busy(0)}, false);
      meeting.wait(milliseconds{200});
    }
    CHECK_FALSE(zero->failure());
    meeting.wait(milliseconds{11'000});
    zero->exchange({busy(0)}, false);
    CHECK(zero->failure() == "rank 1 shows no life any more");
    CHECK(zero->others()->front().end == RankEnd::died);
    one->exchange({busy(1)}, false);
    meeting.wait(milliseconds{11'000});
    one->exchange({busy(1)}, false);
    CHECK(one->failure());
  }
}

TEST_CASE("verify/run_board: a directory in which nothing can be written ends the run at once, and is said") {
  Meeting meeting(2);
  std::ofstream{meeting.file(0).parent_path()} << "a file";
  auto zero = meeting.launcher(0, "a");
  meeting.wait(milliseconds{200});
  zero->exchange({busy(0)}, false);
  REQUIRE(zero->failure());
  CHECK(zero->failure()->starts_with("no file can be written in "));
  const auto others = zero->others();
  REQUIRE(others);
  CHECK(others->front().rank == 1);
  CHECK(others->front().message == *zero->failure());
}

TEST_CASE("verify/run_board: nonsense in the directory is as if it were not there") {
  Meeting meeting(2);
  auto zero = meeting.launcher(0, "a");
  for (const char* text :
       {"", "{", "[]", "7", R"({"token": 7, "run": []})", R"({"token": "t", "run": "a", "rank": 3})"}) {
    std::ofstream(meeting.file(1), std::ios::trunc) << text;
    meeting.wait(milliseconds{200});
    zero->exchange({busy(0)}, false);
    CHECK_FALSE(zero->others());
    CHECK_FALSE(zero->failure());
  }
}

}  // namespace
}  // namespace qlp

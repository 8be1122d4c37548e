#include "verify/supervisor.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "verify/sample_measurement.h"

namespace qlp {
namespace {

using std::chrono::milliseconds;

milliseconds now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

/// A rank that speaks the protocol: a shell script, with its channel at 3.
RankProgram rank(std::int64_t number, const std::string& script) {
  std::string hello = to_line(RankHello{.rank = number});
  hello.pop_back();
  return {.rank = number,
          .program = {.arguments = {"/bin/sh", "-c", "echo '" + hello + "' >&3\n" + script},
                      .environment = {"PATH=/usr/bin:/bin"}}};
}

std::string tell(const RankMessage& message) {
  std::string line = to_line(message);
  line.pop_back();
  return "echo '" + line + "' >&3\n";
}

std::string done() { return tell(sample_measurement()); }
std::string state(const std::string& what) { return tell(RankState{.what = what}); }

SupervisorOptions options(milliseconds timeout = milliseconds{20'000}) {
  SupervisorOptions out;
  out.timeout = timeout;
  out.settle = milliseconds{100};
  out.grace = milliseconds{200};
  out.clock = now;
  return out;
}

/// A folder of its own for marks that scripts leave.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("qlp-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Whether the process whose number is in the file still is there, after a moment.
bool is_left(const std::string& file) {
  std::ifstream in(file);
  int pid = 0;
  in >> pid;
  REQUIRE(pid > 0);
  for (int i = 0; i < 200; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    if (!stat || text.find(") Z ") != std::string::npos) return false;
    std::this_thread::sleep_for(milliseconds{10});
  }
  return true;
}

TEST_CASE("verify/supervisor: ranks that finish bring their results") {
  std::vector<std::string> states;
  SupervisorOptions opts = options();
  opts.on_state = [&](const RankRecord& record) { states.push_back(record.state.what); };
  const auto run = supervise({rank(0, state("load") + done()), rank(1, done())}, opts);
  REQUIRE(run.ranks.size() == 2);
  for (const RankRecord& record : run.ranks) {
    CHECK(record.end == RankEnd::finished);
    CHECK(record.measurement == sample_measurement());
  }
  CHECK(states == std::vector<std::string>{"load"});
  CHECK_FALSE(run.interrupted);
}

TEST_CASE("verify/supervisor: what rank 0 tells of the rendezvous reaches every rank") {
  const std::string wait = "read line <&3; echo \"$line\"\n" + done();
  std::string seen;
  SupervisorOptions opts = options();
  opts.on_output = [&](std::int64_t number, std::string_view text) {
    seen += std::to_string(number) + std::string(text);
  };
  const auto run = supervise({rank(0, tell(Rendezvous{.id = "where"}) + wait), rank(1, wait)}, opts);
  const std::string line = to_line(Rendezvous{.id = "where"});
  CHECK(seen.find("0" + line) != std::string::npos);
  CHECK(seen.find("1" + line) != std::string::npos);
  CHECK(run.ranks[1].end == RankEnd::finished);
}

TEST_CASE("verify/supervisor: a rank that fails ends all, and everyone's last state is kept") {
  const Folder folder;
  const std::string pid = "echo $$ > " + folder.file("pid") + "\nsleep 600 & echo $! > " + folder.file("child") + "\n";
  const RankProgram well = rank(1, state("micro1.backward") + pid + "wait");
  const std::string until_then = "while ! [ -s " + folder.file("child") + " ]; do sleep 0.01; done\n";
  std::string script = state("micro1.forward") + until_then;
  RankEnd end{};
  std::string message;
  SUBCASE("out of memory") {
    end = RankEnd::out_of_memory, message = "tried to allocate 2 GiB";
    script += tell(RankFailure{end, message});
  }
  SUBCASE("a communicator") {
    end = RankEnd::communicator_failed, message = "ncclRemoteError";
    script += tell(RankFailure{end, message}) + "exit 3";
  }
  SUBCASE("killed") {
    end = RankEnd::died, message = "signal 9 (Killed)";
    script += "kill -9 $$";
  }
  SUBCASE("an exit without a result") { end = RankEnd::died, message = "exit status 0"; }
  SUBCASE("an end after the result") {
    end = RankEnd::died, message = "after its result: exit status 5";
    script += done() + "exit 5";
  }
  SUBCASE("nonsense") {
    end = RankEnd::died, message = "told what is no message";
    script += "echo nonsense >&3; sleep 600";
  }
  const auto began = now();
  const auto run = supervise({rank(0, script), well}, options());
  CHECK(now() - began < milliseconds{5'000});
  CHECK(run.ranks[0].end == end);
  CHECK(run.ranks[0].message.find(message) == 0);
  CHECK(run.ranks[0].state.what == "micro1.forward");
  CHECK(run.ranks[1].end == RankEnd::stopped);
  CHECK(run.ranks[1].state.what == "micro1.backward");
  CHECK_FALSE(is_left(folder.file("pid")));
  CHECK_FALSE(is_left(folder.file("child")));
}

TEST_CASE("verify/supervisor: a rank that says nothing hangs, and one that does not heed is killed") {
  const Folder folder;
  const std::string deaf = "trap '' TERM\necho $$ > " + folder.file("pid") + "\n";
  const auto run =
      supervise({rank(0, state("micro1.forward") + deaf + "while :; do sleep 1; done"),
                 rank(1, "for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0; do\n" + state("busy") + "sleep 0.1\ndone")},
                options(milliseconds{600}));
  CHECK(run.ranks[0].end == RankEnd::hung);
  CHECK(run.ranks[0].message.find("no word for 0.") == 0);
  CHECK(run.ranks[0].state.what == "micro1.forward");
  CHECK(run.ranks[1].end == RankEnd::stopped);
  CHECK_FALSE(is_left(folder.file("pid")));
}

TEST_CASE("verify/supervisor: an interruption ends all ranks") {
  const Folder folder;
  SupervisorOptions opts = options();
  const auto mark = folder.file("pid");
  opts.interrupted = [&] { return std::filesystem::exists(mark); };
  const auto run =
      supervise({rank(0, "echo $$ > " + mark + ".new; mv " + mark + ".new " + mark + "; sleep 600")}, opts);
  CHECK(run.interrupted);
  CHECK(run.ranks[0].end == RankEnd::stopped);
  CHECK_FALSE(is_left(mark));
}

TEST_CASE("verify/supervisor: a program that cannot be started, or is another rank, has died") {
  RankProgram none = rank(0, "");
  none.program.arguments = {"/none/program"};
  auto run = supervise({none, rank(1, "sleep 600")}, options());
  CHECK(run.ranks[0].end == RankEnd::died);
  CHECK(run.ranks[0].message == "could not be started: /none/program: No such file or directory");
  CHECK(run.ranks[1].end == RankEnd::stopped);
  RankProgram other = rank(7, done());
  other.rank = 0;
  run = supervise({other}, options());
  CHECK(run.ranks[0].end == RankEnd::died);
  CHECK(run.ranks[0].message.find("is rank 7") == 0);
}

TEST_CASE("verify/supervisor: the last lines of what a rank wrote are kept") {
  const auto run = supervise({rank(0, "yes x | head -c 30000; echo last words >&2; exit 3")}, options());
  CHECK(run.ranks[0].message == "exit status 3");
  CHECK(run.ranks[0].output.size() <= 8192);
  CHECK(run.ranks[0].output.find("last words\n") != std::string::npos);
}

}  // namespace
}  // namespace qlp

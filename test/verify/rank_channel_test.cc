#include "verify/rank_channel.h"

#include <array>
#include <chrono>
#include <sys/socket.h>

#include <doctest/doctest.h>

namespace qlp {
namespace {

using std::chrono::milliseconds;

struct Ends {
  Ends() {
    std::array<int, 2> files{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files.data()) == 0);
    launcher = FileDescriptor{files[0]};
    rank = files[1];
  }
  FileDescriptor launcher;
  int rank = -1;
};

TEST_CASE("verify/rank_channel: what a rank tells arrives, and the rendezvous comes back") {
  Ends ends;
  RankChannel channel(ends.rank);
  CHECK(channel.tell(RankState{.what = "load"}));
  std::string text;
  CHECK(read_available(ends.launcher, text));
  CHECK(text == to_line(RankState{.what = "load"}));
  REQUIRE(write_all(ends.launcher.number(), to_line(Rendezvous{.id = "here"})));
  const auto found = channel.wait_for_rendezvous(milliseconds{1'000});
  REQUIRE(found);
  CHECK(found->id == "here");
}

TEST_CASE("verify/rank_channel: a launcher that is late, gone or confused is told apart") {
  Ends ends;
  RankChannel channel(ends.rank);
  CHECK(channel.wait_for_rendezvous(milliseconds{1}).error() == "rank 0 told no address within the timeout");
  REQUIRE(write_all(ends.launcher.number(), to_line(RankState{.what = "load"})));
  CHECK(channel.wait_for_rendezvous(milliseconds{1'000}).error() ==
        "the launcher told something else than a rendezvous");
  ends.launcher.close();
  CHECK(channel.wait_for_rendezvous(milliseconds{1'000}).error() == "the launcher is gone");
  CHECK_FALSE(channel.tell(RankState{.what = "load"}));
}

}  // namespace
}  // namespace qlp

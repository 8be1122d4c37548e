#include "verify/rank_message.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "verify/sample_measurement.h"

namespace qlp {
namespace {

TEST_CASE("verify/rank_message: every message comes back as it was") {
  const RankMessage messages[] = {
      RankHello{.rank = 3},
      RankState{.what = "micro1.forward", .done = 2, .of = 9},
      Rendezvous{.id = std::string("\0\xff\n\"id", 6)},
      RankFailure{.end = RankEnd::out_of_memory, .message = "tried to allocate \"2 GiB\"\n"},
      sample_measurement(),
  };
  for (const RankMessage& message : messages) {
    const std::string line = to_line(message);
    CHECK(line.find('\n') == line.size() - 1);
    const auto back = parse_line(line);
    REQUIRE_MESSAGE(back, back.error());
    CHECK(*back == message);
  }
}

TEST_CASE("verify/rank_message: a loss that is no number survives") {
  RankMeasurement measured;
  measured.losses = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.1};
  const auto back = parse_line(to_line(measured));
  REQUIRE(back);
  const auto& losses = std::get<RankMeasurement>(*back).losses;
  CHECK(std::isnan(losses.at(0)));
  CHECK(std::isinf(losses.at(1)));
  CHECK(losses.at(2) == 0.1);
}

TEST_CASE("verify/rank_message: nonsense is refused with its words") {
  for (const std::string line :
       {"", "{", "[]", "{}", R"({"type": "hallo"})", R"({"type": "state", "what": 3})",
        R"({"type": "failure", "end": "tired", "message": ""})", R"({"type": "rendezvous", "id": "0g"})",
        R"({"type": "measurement"})", R"({"type": "hello", "rank": "x", "protocol": 1})", "\xff\xfe"}) {
    const auto message = parse_line(line);
    CHECK_MESSAGE(!message, line);
    if (!message) CHECK(message.error().find(line) != std::string::npos);
  }
}

TEST_CASE("verify/rank_message: lines are cut where they end, however they come") {
  LineBuffer lines;
  lines.text() += "one\ntw";
  CHECK(lines.next() == "one");
  CHECK_FALSE(lines.next());
  CHECK(lines.holds_part());
  lines.text() += "o\n\n";
  CHECK(lines.next() == "two");
  CHECK(lines.next() == "");
  CHECK_FALSE(lines.next());
  CHECK_FALSE(lines.holds_part());
}

}  // namespace
}  // namespace qlp

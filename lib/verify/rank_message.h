// What a rank and its launcher tell each other: one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "estimate/verification.h"
#include "verify/rank_measurement.h"

namespace qlp {

inline constexpr std::int64_t kProtocol = 1;

/// The first word of a rank.
struct RankHello {
  std::int64_t rank = 0;
  std::int64_t protocol = kProtocol;
  friend bool operator==(const RankHello&, const RankHello&) = default;
};

/// What it is about to do. A rank that says nothing for longer than the timeout hangs.
struct RankState {
  std::string what;       ///< "start", "rendezvous", "load", "micro1.forward", ...
  std::int64_t done = 0;  ///< of `of` parts of the run
  std::int64_t of = 0;
  friend bool operator==(const RankState&, const RankState&) = default;
};

/// How the ranks find each other: from rank 0 to its launcher, and from there to all.
struct Rendezvous {
  std::string id;  ///< of the communicator, any bytes
  friend bool operator==(const Rendezvous&, const Rendezvous&) = default;
};

/// Its last word where it cannot go on.
struct RankFailure {
  RankEnd end = RankEnd::device_failed;
  std::string message;
  friend bool operator==(const RankFailure&, const RankFailure&) = default;
};

/// Hello, states, a rendezvous of rank 0, then a measurement or a failure.
using RankMessage = std::variant<RankHello, RankState, Rendezvous, RankFailure, RankMeasurement>;

/// A line of JSON with its newline.
std::string to_line(const RankMessage& message);
/// The error says what is wrong with the line.
Result<RankMessage, std::string> parse_line(std::string_view line);

/// Cuts a stream into lines.
class LineBuffer {
 public:
  std::string& text() { return text_; }  ///< what came is appended here
  std::optional<std::string> next();     ///< without its newline; none before all of it is there
  bool holds_part() const { return !text_.empty(); }

 private:
  std::string text_;
};

}  // namespace qlp

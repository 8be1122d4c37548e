// What a value on the command line may look like; the messages say what was expected.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/text.h"
#include "estimate/verification.h"

namespace qlp::app {

/// Accepts one of the words; the message offers the one that was probably meant.
template <std::size_t N>
CLI::Validator one_of(const std::array<std::string_view, N>& words) {
  return CLI::Validator{[&words](std::string& word) {
                          if (std::ranges::find(words, word) != words.end()) return std::string{};
                          const auto near = closest(word, words);
                          return "'" + word + "' is none of " + join(words) +
                                 (near ? "; did you mean " + std::string{*near} + "?" : "");
                        },
                        "", "one_of"};
}

/// Accepts whole numbers of a range.
inline CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return CLI::Validator{[least, most](std::string& word) {
                          std::int64_t number = 0;
                          const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
                          const bool whole = error == std::errc{} && end == word.data() + word.size();
                          if (whole && number >= least && number <= most) return std::string{};
                          const std::string range = most == std::numeric_limits<std::int64_t>::max()
                                                        ? std::to_string(least) + " or more"
                                                        : std::to_string(least) + " to " + std::to_string(most);
                          return "'" + word + "' is " + (whole ? "out of range" : "not a whole number") +
                                 ": expected " + range;
                        },
                        "", "whole_number"};
}

/// A size with its unit.
inline CLI::Validator size_text() {
  return CLI::Validator{[](std::string& text) {
                          const auto size = parse_size(text);
                          return size ? std::string{} : size.error();
                        },
                        "", "size"};
}

/// "2MiB" or "1%".
inline Result<Tolerance, std::string> parse_tolerance(const std::string& text) {
  if (text.ends_with('%')) {
    const auto share = parse_percent(text);
    return share ? Result<Tolerance, std::string>{Tolerance{.share = *share}} : Unexpected{share.error()};
  }
  const auto size = parse_size(text);
  return size ? Result<Tolerance, std::string>{Tolerance{.bytes = *size}} : Unexpected{size.error()};
}

/// What parse_tolerance takes.
inline CLI::Validator tolerance_text() {
  return CLI::Validator{[](std::string& text) {
                          const auto tolerance = parse_tolerance(text);
                          return tolerance ? std::string{} : tolerance.error();
                        },
                        "", "tolerance"};
}

/// "WHAT=VALUE".
inline CLI::Validator assignment() {
  return CLI::Validator{[](std::string& text) {
                          const std::size_t at = text.rfind('=');
                          const bool whole = at != std::string::npos && at != 0 && at + 1 != text.size();
                          return whole ? std::string{} : "'" + text + "' is not WHAT=VALUE";
                        },
                        "", "answer"};
}

}  // namespace qlp::app

// What a value on the command line may look like; the messages say what was expected.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/enum_names.h"
#include "base/result.h"
#include "base/text.h"
#include "estimate/search.h"
#include "estimate/verification.h"

namespace qlp::app {

/// No value that is searched is larger: what a sequence can hold at the most.
inline constexpr std::int64_t kMostSearched = std::int64_t{1} << 24;

/// The words of an enum, in the order of its values.
template <NamedEnum E>
constexpr auto kWordsOf = [] {
  std::array<std::string_view, kEnumNames<E>.size()> words{};
  std::ranges::transform(kEnumNames<E>, words.begin(), &EnumName<E>::name);
  return words;
}();

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
CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// A size with its unit, more than nothing.
CLI::Validator size_text();

/// A share in percent, without its sign.
CLI::Validator percent_number();

/// "2MiB" or "1%".
Result<Tolerance, std::string> parse_tolerance(const std::string& text);

/// What parse_tolerance takes.
CLI::Validator tolerance_text();

/// "seq_len=2048,4096": values in the order given, each once.
Result<SearchAlong, std::string> parse_along(const std::string& text);

/// What parse_along takes.
CLI::Validator along_text();

/// What `trace --answer` takes: a kind of read or "file.py:line", and true, false or a number.
CLI::Validator answer_text();

}  // namespace qlp::app

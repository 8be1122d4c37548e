#include "app/validators.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace qlp::app {
namespace {

/// A number without unit.
bool is_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
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

CLI::Validator size_text() {
  return CLI::Validator{[](std::string& text) {
                          const auto size = parse_size(text);
                          if (!size) return size.error();
                          return *size == Bytes{} ? "nothing at all: expected more than 0" : std::string{};
                        },
                        "", "size"};
}

CLI::Validator percent_number() {
  return CLI::Validator{[](std::string& text) {
                          const bool fine = is_number(text) && std::stod(text) >= 0 && std::stod(text) < 100;
                          return fine ? std::string{} : "'" + text + "' is no percentage: expected 0 to less than 100";
                        },
                        "", "percent"};
}

Result<Tolerance, std::string> parse_tolerance(const std::string& text) {
  if (text.ends_with('%')) {
    const auto share = parse_percent(text);
    return share ? Result<Tolerance, std::string>{Tolerance{.share = *share}} : Unexpected{share.error()};
  }
  const auto size = parse_size(text);
  return size ? Result<Tolerance, std::string>{Tolerance{.bytes = *size}} : Unexpected{size.error()};
}

CLI::Validator tolerance_text() {
  return CLI::Validator{[](std::string& text) {
                          const auto tolerance = parse_tolerance(text);
                          return tolerance ? std::string{} : tolerance.error();
                        },
                        "", "tolerance"};
}

Result<SearchAlong, std::string> parse_along(const std::string& text) {
  const std::size_t at = text.find('=');
  std::string key = text.substr(0, at);
  if (std::string wrong = one_of(kWordsOf<SearchKey>)(key); !wrong.empty()) return Unexpected{std::move(wrong)};
  SearchAlong along{.key = *from_name<SearchKey>(key), .values = {}};
  for (std::size_t from = at; from < text.size();) {
    const std::size_t to = std::min(text.find(',', ++from), text.size());
    std::string word = text.substr(from, to - from);
    if (std::string wrong = whole_number(1, kMostSearched)(word); !wrong.empty()) return Unexpected{std::move(wrong)};
    const std::int64_t value = std::stoll(word);
    if (std::ranges::find(along.values, value) == along.values.end()) along.values.push_back(value);
    from = to;
  }
  if (along.values.empty())
    return Unexpected{"'" + text + "' has no values: expected " + text.substr(0, at) + "=N,N,.."};
  return along;
}

CLI::Validator along_text() {
  return CLI::Validator{[](std::string& text) {
                          const auto along = parse_along(text);
                          return along ? std::string{} : along.error();
                        },
                        "", "along"};
}

CLI::Validator answer_text() {
  return CLI::Validator{[](std::string& text) -> std::string {
                          static constexpr std::array<std::string_view, 6> kKinds{"bool",    "float", "int",
                                                                                  "compare", "equal", "nonzero"};
                          const std::size_t at = text.rfind('=');
                          if (at == std::string::npos) return "'" + text + "' is not WHAT=VALUE";
                          const std::string what = text.substr(0, at), value = text.substr(at + 1);
                          const std::size_t colon = what.rfind(':');
                          const bool place = colon != std::string::npos && colon != 0 && colon + 1 < what.size() &&
                                             what.find_first_not_of("0123456789", colon + 1) == std::string::npos;
                          if (!place && std::ranges::find(kKinds, what) == kKinds.end()) {
                            const auto near = closest(what, kKinds);
                            return "'" + what + "' is none of " + join(kKinds) + ", and no place like train.py:120" +
                                   (near ? "; did you mean " + std::string{*near} + "?" : "");
                          }
                          if (value == "true" || value == "false" || is_number(value)) return {};
                          return "'" + value + "' is neither true nor false nor a number";
                        },
                        "", "answer"};
}

}  // namespace qlp::app

#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

namespace qlp {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 11> kUnits{{{"B", 1},
                                       {"KiB", 1ULL << 10},
                                       {"MiB", 1ULL << 20},
                                       {"GiB", 1ULL << 30},
                                       {"TiB", 1ULL << 40},
                                       {"kB", 1'000},
                                       {"KB", 1'000},
                                       {"MB", 1'000'000},
                                       {"GB", 1'000'000'000},
                                       {"TB", 1'000'000'000'000},
                                       {"PB", 1'000'000'000'000'000}}};
constexpr std::size_t kBinaryUnits = 5;  ///< the first so many of kUnits

/// Sizes end here, so that the difference of two always has a sign.
constexpr std::uint64_t kLargestSize = (1ULL << 63) - 1;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Length of the decimal number that the text begins with ("80", "1.5"), 0 if it does not.
std::size_t decimal_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == 0 || at + 1 >= text.size() || text[at] != '.' || !is_digit(text[at + 1])) return at;
  ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 40)) + "'"; }

Unexpected<std::string> unknown_unit(std::string_view number, std::string_view unit) {
  if (unit.empty())
    return {quoted(number) + " has no unit: write " + std::string(number) + "GiB (2^30 bytes) or " +
            std::string(number) + "GB (10^9)"};
  const char first = lower(unit.front());
  const bool bare = (unit.size() == 1 || (unit.size() == 2 && lower(unit[1]) == 'i')) &&
                    std::string_view{"kmgtp"}.find(first) != std::string_view::npos;
  if (bare) {
    const auto prefix = std::string(1, static_cast<char>(first - 'a' + 'A'));
    return {"the unit " + quoted(unit) + " may mean two things: write " + std::string(number) + prefix +
            "iB (powers of 1024) or " + std::string(number) + prefix + "B (powers of 1000)"};
  }
  return {"unknown unit " + quoted(unit) + ": sizes are written like 80GiB (2^30 bytes) or 80GB (10^9)"};
}

/// Letters as edit_distance compares them.
char folded(char c) { return c == '_' || c == ' ' || c == '.' ? '-' : lower(c); }

}  // namespace

Result<Bytes, std::string> parse_size(std::string_view text) {
  text = trim(text);
  const auto length = decimal_length(text);
  if (length == 0) return Unexpected{quoted(text) + " is not a size: sizes are written like 80GiB or 80GB"};
  const auto number = text.substr(0, length);
  const auto name = trim(text.substr(length));
  const auto* unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == kUnits.end()) return unknown_unit(number, name);

  const auto too_large = Unexpected{quoted(text) + " is more than there can be"};
  const auto point = std::min(number.find('.'), number.size());
  std::uint64_t whole = 0;
  if (std::from_chars(number.data(), number.data() + point, whole).ec != std::errc{}) return too_large;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(whole, unit->bytes, &bytes)) return too_large;
  if (point < number.size()) {
    double fraction = 0;
    std::from_chars(number.data() + point, number.data() + number.size(), fraction);
    bytes += static_cast<std::uint64_t>(std::llround(fraction * static_cast<double>(unit->bytes)));
  }
  if (bytes > kLargestSize) return too_large;
  return Bytes{bytes};
}

std::string format_size(Bytes amount) {
  auto value = static_cast<double>(amount.count());
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kBinaryUnits) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> buffer{};
  const int digits = unit == 0 || value >= 1000 ? 0 : value >= 100 ? 1 : 2;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits).ptr;
  return std::string(buffer.data(), end) + " " + std::string(kUnits[unit].name);
}

std::string exact_size(Bytes amount) {
  std::size_t unit = kBinaryUnits - 1;
  while (amount.count() % kUnits[unit].bytes != 0) --unit;
  if (amount.count() == 0) unit = 0;
  return std::to_string(amount.count() / kUnits[unit].bytes) + std::string(kUnits[unit].name);
}

Result<Bytes, std::string> parse_rate(std::string_view text) {
  text = trim(text);
  if (!text.ends_with("/s")) return Unexpected{quoted(text) + " is not a rate: rates are written like 50GB/s"};
  return parse_size(text.substr(0, text.size() - 2));
}

std::string exact_rate(Bytes per_second) {
  constexpr std::uint64_t kGiga = 1'000'000'000;  // networks are sold in powers of ten
  const std::uint64_t bytes = per_second.count();
  return (bytes % kGiga == 0 ? std::to_string(bytes / kGiga) + "GB" : exact_size(per_second)) + "/s";
}

Result<double, std::string> parse_percent(std::string_view text) {
  text = trim(text);
  const auto length = decimal_length(text);
  if (length == 0 || trim(text.substr(length)) != "%")
    return Unexpected{quoted(text) + " is not a percentage: write it like 2%"};
  // Read with the exponent in the text, so that the result is the double nearest to the decimal share.
  const auto shifted = std::string(text.substr(0, length)) + "e-2";
  double share = 0;
  if (std::from_chars(shifted.data(), shifted.data() + shifted.size(), share).ec != std::errc{})
    return Unexpected{quoted(text) + " is more than there can be"};
  return share;
}

std::string exact_percent(double share) {
  std::array<char, 512> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), share, std::chars_format::fixed).ptr;
  std::string digits(buffer.data(), end);
  auto point = digits.find('.');
  if (point == std::string::npos) {
    point = digits.size();
  } else {
    digits.erase(point, 1);
  }
  while (digits.size() < point + 2) digits += '0';
  digits.insert(point + 2, ".");
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  const auto first = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, first);
  if (digits.empty() || digits.front() == '.') digits.insert(0, "0");
  return digits + "%";
}

std::string exact_number(double number) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

std::string with_commas(std::uint64_t count) {
  auto text = std::to_string(count);
  for (auto at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // Three rows of the table of optimal string alignment.
  std::vector<std::size_t> before(to.size() + 1), above(to.size() + 1), row(to.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = folded(from[i - 1]) == folded(to[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && folded(from[i - 1]) == folded(to[j - 2]) && folded(from[i - 2]) == folded(to[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[to.size()];
}

std::optional<std::string_view> closest(std::string_view word, std::span<const std::string_view> words) {
  constexpr std::size_t kLongestWord = 64;
  constexpr std::size_t kShortestStart = 3;
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (auto candidate : words) {
    if (candidate.empty()) continue;
    const auto distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  if (best || word.size() < kShortestStart) return best;
  // A word that was cut short, or a name without its last part.
  for (auto candidate : words)
    if (candidate.size() > word.size() && edit_distance(word, candidate.substr(0, word.size())) == 0) return candidate;
  return std::nullopt;
}

std::size_t letter_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  return length;
}

std::string harmless(std::string_view text, std::string_view kept) {
  const auto is_control = [&](std::string_view letter) {
    const auto first = static_cast<unsigned char>(letter.front());
    if (letter.size() == 2) return first == 0xC2 && static_cast<unsigned char>(letter[1]) < 0xA0;  // U+0080 to U+009F
    return letter.size() == 1 && (first < 0x20 || first == 0x7F) && kept.find(letter) == std::string_view::npos;
  };
  std::string out;
  while (!text.empty()) {
    const std::size_t length = letter_length(text);
    const auto letter = text.substr(0, std::max<std::size_t>(length, 1));
    out += length == 0 || is_control(letter) ? "?" : letter;
    text.remove_prefix(letter.size());
  }
  return out;
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += separator;
    text += words[i];
  }
  return text;
}

}  // namespace qlp

#include "config/text_node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace qlp {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

/// Decimal digits that YAML 1.1 would read as octal.
bool looks_octal(std::string_view text) {
  const auto digits = without_sign(text);
  return digits.size() > 1 && digits.front() == '0' && all_digits(digits);
}

Unexpected<std::string> not_a(std::string_view what, const TextNode& node) {
  return {"expected " + std::string(what) + ", found " + describe(node)};
}

bool is_plain(const TextNode& node) { return node.kind == NodeKind::scalar && !node.quoted; }

}  // namespace

const TextNode* find(const TextNode& map, std::string_view key) {
  const auto entry =
      std::find_if(map.entries.rbegin(), map.entries.rend(), [&](const Entry& e) { return e.key == key; });
  return entry == map.entries.rend() ? nullptr : entry->value.get();
}

std::string describe(const TextNode& node) {
  constexpr std::size_t kLongest = 40;
  switch (node.kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::sequence:
      return "a list";
    case NodeKind::map:
      return "a map";
    case NodeKind::scalar:
      break;
  }
  auto shown = node.text.substr(0, kLongest);
  if (shown.size() < node.text.size()) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0x80U) != 0) shown.pop_back();
    shown += "...";
  }
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return (node.quoted ? "the text '" : "'") + shown + "'";
}

Result<std::int64_t, std::string> integer_of(const TextNode& node) {
  if (!is_plain(node)) return not_a("an integer", node);
  if (looks_octal(node.text))
    return Unexpected{"the leading 0 of " + describe(node) + " would make it octal elsewhere: write it without"};
  if (!all_digits(without_sign(node.text))) return not_a("an integer", node);
  std::string_view digits = node.text;
  if (digits.front() == '+') digits.remove_prefix(1);
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{})
    return Unexpected{describe(node) + " is beyond 64 bits"};
  return value;
}

Result<double, std::string> number_of(const TextNode& node) {
  if (!is_plain(node)) return not_a("a number", node);
  if (looks_octal(node.text))
    return Unexpected{"the leading 0 of " + describe(node) + " would make it octal elsewhere: write it without"};
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return not_a("a number", node);
  if (error != std::errc{} || !std::isfinite(value)) return not_a("a finite number", node);
  return value;
}

Result<bool, std::string> boolean_of(const TextNode& node) {
  if (is_plain(node)) {
    if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
    if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  }
  return not_a("true or false", node);
}

Result<std::string, std::string> text_of(const TextNode& node) {
  if (node.kind != NodeKind::scalar) return not_a("a text", node);
  return node.text;
}

}  // namespace qlp

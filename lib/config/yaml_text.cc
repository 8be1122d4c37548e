#include "config/yaml_text.h"

#include <algorithm>
#include <array>

namespace qlp {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string yaml_text(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  constexpr std::array<std::string_view, 8> kNotWords{"no", "yes", "on", "off", "true", "false", "null", "Null"};
  if (plain && std::find(kNotWords.begin(), kNotWords.end(), text) == kNotWords.end()) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      quoted += c;
      continue;
    }
    quoted += "\\x";
    quoted += kHexDigits[static_cast<unsigned char>(c) >> 4U];
    quoted += kHexDigits[static_cast<unsigned char>(c) & 15U];
  }
  return quoted + "\"";
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string text = "[";
  for (std::size_t i = 0; i < texts.size(); ++i) text += (i > 0 ? ", " : "") + yaml_text(texts[i]);
  return text + "]";
}

}  // namespace qlp

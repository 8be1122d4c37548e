// The versions of the Python libraries that a job runs on.
#pragma once

#include <array>
#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qlp {

/// A release number; "4.57.1", "2.8.0+cu128", "0.20.1.dev0" (what follows the third number is dropped).
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

constexpr std::optional<Version> parse_version(std::string_view text) {
  std::array<std::uint32_t, 3> parts{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && parts[i] < 100'000'000)
      parts[i] = parts[i] * 10 + static_cast<std::uint32_t>(text[at++] - '0');
    if (at < text.size() && text[at] >= '0' && text[at] <= '9') return std::nullopt;  // no version has so many digits
    if (at == start) return i >= 2 ? std::optional{Version{parts[0], parts[1], 0}} : std::nullopt;
    if (at == text.size() || text[at] != '.') break;
    ++at;
  }
  return Version{parts[0], parts[1], parts[2]};
}

inline std::string to_string(const Version& v) {
  return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

/// The defaults are the newest stack that the program was checked against.
struct StackVersions {
  Version torch{2, 14, 1};
  Version transformers{5, 24, 0};
  Version peft{0, 21, 2};
  Version accelerate{1, 15, 0};
  Version bitsandbytes{0, 50, 2};
  Version deepspeed{0, 18, 3};
  friend bool operator==(const StackVersions&, const StackVersions&) = default;
};

}  // namespace qlp

// The words of an enum: one table of them for reading, writing and messages.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace qlp {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

/// The table of an enum's words, in the order of its values; empty where nobody named them.
template <class E>
inline constexpr std::array<EnumName<E>, 0> kEnumNames{};

template <class E>
concept NamedEnum = !kEnumNames<E>.empty();

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  for (const auto& row : kEnumNames<E>)
    if (row.value == value) return row.name;
  return {};
}

template <NamedEnum E>
constexpr std::optional<E> from_name(std::string_view name) {
  for (const auto& row : kEnumNames<E>)
    if (row.name == name) return row.value;
  return std::nullopt;
}

}  // namespace qlp

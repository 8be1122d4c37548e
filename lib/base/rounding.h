// Whole numbers in parts of a size.
#pragma once

#include <concepts>
#include <type_traits>

namespace qlp {

/// How many parts of `unit` (not 0) hold `n` (not negative).
template <std::integral T>
constexpr T ceil_div(T n, std::type_identity_t<T> unit) {
  return (n + unit - 1) / unit;
}

/// Rounds up to a multiple of `unit` (not 0).
template <std::integral T>
constexpr T round_up(T n, std::type_identity_t<T> unit) {
  return ceil_div(n, unit) * unit;
}

}  // namespace qlp

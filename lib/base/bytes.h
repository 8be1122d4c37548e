// Amounts of memory: Bytes counts (checked, never negative), ByteDelta compares (signed).
// There is no Bytes - Bytes and no Bytes + int: a difference that may be negative is a ByteDelta.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>

#include "base/rounding.h"

namespace qlp {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }

  constexpr Bytes& operator+=(Bytes other) {
    if (__builtin_add_overflow(count_, other.count_, &count_)) throw std::overflow_error("more than 2^64 bytes");
    return *this;
  }
  /// Takes away what is known to be part of this amount. Throws std::underflow_error if it is not.
  constexpr Bytes& remove(Bytes part) {
    if (part.count_ > count_) throw std::underflow_error("removed more bytes than there are");
    count_ -= part.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t times) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a.count_, times, &product)) throw std::overflow_error("more than 2^64 bytes");
    return Bytes{product};
  }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::uint64_t count_ = 0;
};

/// Rounds up to a multiple of `unit` (not 0).
constexpr Bytes round_up(Bytes amount, std::uint64_t unit) { return Bytes{round_up(amount.count(), unit)}; }

/// A signed difference between two amounts: headroom, error, growth.
class ByteDelta {
 public:
  constexpr ByteDelta() = default;
  constexpr explicit ByteDelta(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }
  friend constexpr auto operator<=>(ByteDelta, ByteDelta) = default;

 private:
  std::int64_t count_ = 0;
};

/// `a` - `b`, which may be negative.
constexpr ByteDelta difference(Bytes a, Bytes b) {
  return ByteDelta{static_cast<std::int64_t>(a.count()) - static_cast<std::int64_t>(b.count())};
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }
}  // namespace literals

}  // namespace qlp

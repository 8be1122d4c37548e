// Numbers from a counter: the same for every plan, rank and device, whatever was asked for before. Also for device
// code.
#pragma once

#include <cstdint>
#include <string_view>

namespace qlp {

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// 64 random bits: element `index` of the sequence `key`.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  return mixed(key + (index + 1) * 0x9e3779b97f4a7c15U);
}

/// In [0, 1), of 24 bits: exact in float32.
constexpr float random_unit(std::uint64_t key, std::uint64_t index) {
  return static_cast<float>(random_bits(key, index) >> 40U) * 0x1p-24F;
}

/// The key of a sequence within that of `key`.
constexpr std::uint64_t random_key(std::uint64_t key, std::uint64_t which) { return random_bits(key, which); }
constexpr std::uint64_t random_key(std::uint64_t key, std::string_view name) {
  for (const char c : name) key = random_bits(key, static_cast<unsigned char>(c));
  return key;
}

}  // namespace qlp

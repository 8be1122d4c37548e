// One element of an array as a number of the host, and back: rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace qlp {

inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);  // stays no number
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

inline float from_float16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U, magnitude = half & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13U));
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13U) + 0x38000000U));
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  return sign ? -small : small;
}

inline std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;            // rounds past 65504
  if (magnitude < 0x38800000U) {                                  // no normal number: the unit is 2^-24
    const float scaled = std::bit_cast<float>(magnitude) + 0.5F;  // 0.5 has that unit in float32
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

template <class T>
T load_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

inline double load_number(const std::byte* from, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return load_as<float>(from);
    case DType::float16:
      return from_float16(load_as<std::uint16_t>(from));
    case DType::bfloat16:
      return from_bfloat16(load_as<std::uint16_t>(from));
    case DType::float64:
      return load_as<double>(from);
    case DType::int64:
      return static_cast<double>(load_as<std::int64_t>(from));
    case DType::int32:
      return load_as<std::int32_t>(from);
    case DType::int16:
      return load_as<std::int16_t>(from);
    case DType::int8:
      return load_as<std::int8_t>(from);
    case DType::uint8:
      return load_as<std::uint8_t>(from);
    case DType::boolean:
      return load_as<std::uint8_t>(from) != 0 ? 1 : 0;
  }
  return 0;
}

inline void store_number(std::byte* to, DType dtype, double value) {
  switch (dtype) {
    case DType::float32:
      return store_as(to, static_cast<float>(value));
    case DType::float16:
      return store_as(to, to_float16(static_cast<float>(value)));
    case DType::bfloat16:
      return store_as(to, to_bfloat16(static_cast<float>(value)));
    case DType::float64:
      return store_as(to, value);
    case DType::int64:
      return store_as(to, static_cast<std::int64_t>(value));
    case DType::int32:
      return store_as(to, static_cast<std::int32_t>(value));
    case DType::int16:
      return store_as(to, static_cast<std::int16_t>(value));
    case DType::int8:
      return store_as(to, static_cast<std::int8_t>(value));
    case DType::uint8:
      return store_as(to, static_cast<std::uint8_t>(value));
    case DType::boolean:
      return store_as(to, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
  }
}

}  // namespace qlp

#include "nullgpu/communicators.h"

#include <cstring>
#include <mutex>

#include "nullgpu/books.h"
#include "nullgpu/copies.h"
#include "nullgpu/settings.h"

namespace nullgpu {
namespace {

template <class Number>
void reduce_all(void* p, std::size_t n, int operation, int ranks) {
  for (std::size_t i = 0; i < n; ++i) {
    Number value{};
    auto* at = static_cast<unsigned char*>(p) + i * sizeof value;
    std::memcpy(&value, at, sizeof value);
    Number result = value;
    if (operation == kSum) {
      result = static_cast<Number>(value * static_cast<Number>(ranks));
    } else {
      for (int r = 1; r < ranks; ++r) {
        result = static_cast<Number>(result * value);
      }
    }
    std::memcpy(at, &result, sizeof result);
  }
}

float to_float(std::uint16_t bits, bool brain) {
  std::uint32_t wide = 0;
  if (brain) {
    wide = static_cast<std::uint32_t>(bits) << 16U;
  } else {
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
    const std::uint32_t fraction = bits & 0x3ffU;
    if (exponent == 0) {
      const float value = static_cast<float>(fraction) * 0x1p-24F;
      return sign != 0 ? -value : value;
    }
    wide = sign | (exponent == 31 ? 0x7f800000U : (exponent + 112U) << 23U) | fraction << 13U;
  }
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

std::uint16_t to_bits(float value, bool brain) {
  std::uint32_t wide = 0;
  std::memcpy(&wide, &value, sizeof wide);
  if (brain) {
    return static_cast<std::uint16_t>((wide + 0x7fffU + ((wide >> 16U) & 1U)) >> 16U);
  }
  const auto sign = static_cast<std::uint16_t>((wide >> 16U) & 0x8000U);
  const auto exponent = static_cast<int>((wide >> 23U) & 0xffU) - 112;
  if (exponent >= 31) {
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (exponent <= 0) {
    const float magnitude = value < 0 ? -value : value;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1p24F + 0.5F));
  }
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(exponent) << 10U) +
                                            (((wide & 0x7fffffU) + 0xfffU + ((wide >> 13U) & 1U)) >> 13U)));
}

void reduce_halves(void* p, std::size_t n, int operation, int ranks, bool brain) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    auto* at = static_cast<unsigned char*>(p) + i * sizeof bits;
    std::memcpy(&bits, at, sizeof bits);
    float value = to_float(bits, brain);
    reduce_all<float>(&value, 1, operation, ranks);
    bits = to_bits(value, brain);
    std::memcpy(at, &bits, sizeof bits);
  }
}

}  // namespace

std::size_t nccl_element_bytes(int type) {
  static constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < 0 || type >= 12 ? 0 : kBytes[type];
}

void reduce(void* out, const void* in, std::size_t n, int type, int operation, int ranks) {
  const std::size_t bytes = n * nccl_element_bytes(type);
  copy(out, in, bytes);
  if ((operation != kSum && operation != kProduct) || ranks == 1 || bytes > settings().copy_max) {
    return;
  }
  Books& books = Books::get();
  const std::lock_guard guard(books);
  const auto begin = reinterpret_cast<std::uintptr_t>(out);
  Block block{};
  const bool on_device = books.find(out, block) && block.on_device();
  if (on_device && books.known().count(begin, begin + bytes) == 0) {
    return;  // zeros
  }
  switch (type) {
    case 0:
      return reduce_all<std::int8_t>(out, n, operation, ranks);
    case 1:
      return reduce_all<std::uint8_t>(out, n, operation, ranks);
    case 2:
      return reduce_all<std::int32_t>(out, n, operation, ranks);
    case 3:
      return reduce_all<std::uint32_t>(out, n, operation, ranks);
    case 4:
      return reduce_all<std::int64_t>(out, n, operation, ranks);
    case 5:
      return reduce_all<std::uint64_t>(out, n, operation, ranks);
    case 6:
      return reduce_halves(out, n, operation, ranks, false);
    case 7:
      return reduce_all<float>(out, n, operation, ranks);
    case 8:
      return reduce_all<double>(out, n, operation, ranks);
    case 9:
      return reduce_halves(out, n, operation, ranks, true);
    default:
      return;  // 8-bit floating point: as it is
  }
}

}  // namespace nullgpu

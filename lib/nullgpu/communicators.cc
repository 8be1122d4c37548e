#include "nullgpu/communicators.h"

#include <algorithm>
#include <cmath>
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
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::lround(magnitude * 0x1p24F)));
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

// One element of each message, as numbers of type Wide.
template <class Wide, class Load, class Store>
void combine_all(unsigned char* messages, std::size_t n, std::size_t element, int operation, int ranks, Load&& load,
                 Store&& store) {
  for (std::size_t i = 0; i < n; ++i) {
    Wide result = load(messages + i * element);
    for (int r = 1; r < ranks; ++r) {
      const Wide value = load(messages + (static_cast<std::size_t>(r) * n + i) * element);
      if (operation == kProduct) {
        result = static_cast<Wide>(result * value);
      } else if (operation == kMaximum) {
        result = std::max(result, value);
      } else if (operation == kMinimum) {
        result = std::min(result, value);
      } else {
        result = static_cast<Wide>(result + value);
      }
    }
    if (operation == kAverage) {
      result = static_cast<Wide>(result / static_cast<Wide>(ranks));
    }
    store(messages + i * element, result);
  }
}

template <class Number>
bool combine_numbers(unsigned char* messages, std::size_t n, int operation, int ranks) {
  combine_all<Number>(
      messages, n, sizeof(Number), operation, ranks,
      [](const unsigned char* p) {
        Number value{};
        std::memcpy(&value, p, sizeof value);
        return value;
      },
      [](unsigned char* p, Number value) { std::memcpy(p, &value, sizeof value); });
  return true;
}

bool combine_halves(unsigned char* messages, std::size_t n, int operation, int ranks, bool brain) {
  combine_all<float>(
      messages, n, 2, operation, ranks,
      [brain](const unsigned char* p) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, p, sizeof bits);
        return to_float(bits, brain);
      },
      [brain](unsigned char* p, float value) {
        const std::uint16_t bits = to_bits(value, brain);
        std::memcpy(p, &bits, sizeof bits);
      });
  return true;
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

bool combine(unsigned char* messages, std::size_t n, int type, int operation, int ranks) {
  switch (type) {
    case 0:
      return combine_numbers<std::int8_t>(messages, n, operation, ranks);
    case 1:
      return combine_numbers<std::uint8_t>(messages, n, operation, ranks);
    case 2:
      return combine_numbers<std::int32_t>(messages, n, operation, ranks);
    case 3:
      return combine_numbers<std::uint32_t>(messages, n, operation, ranks);
    case 4:
      return combine_numbers<std::int64_t>(messages, n, operation, ranks);
    case 5:
      return combine_numbers<std::uint64_t>(messages, n, operation, ranks);
    case 6:
      return combine_halves(messages, n, operation, ranks, false);
    case 7:
      return combine_numbers<float>(messages, n, operation, ranks);
    case 8:
      return combine_numbers<double>(messages, n, operation, ranks);
    case 9:
      return combine_halves(messages, n, operation, ranks, true);
    default:
      return false;
  }
}

}  // namespace nullgpu

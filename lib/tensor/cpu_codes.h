// The nearest code of a number in [-1, 1], as bitsandbytes' kernels find it (csrc/kernels.cu, 0.43 to 0.50).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace qlp::cpu {

inline float greatest_of(const std::vector<float>& values) {
  float greatest = 0;
  for (const float v : values) greatest = std::max(greatest, std::abs(v));
  return greatest;
}

/// dQuantizeNF4: halfway between neighbours belongs to the lower one.
inline std::uint32_t nf4_code(float x) {
  constexpr std::array<float, 15> kBounds{
      -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
      -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
      0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784181118011F};
  std::uint32_t code = 0;
  for (const float bound : kBounds)
    if (x > bound) ++code;
  return code;
}

/// dQuantizeFP4: codes of ascending magnitude are 0, 1, 6, 7, 4, 5, 2, 3; the fourth bit is the sign.
inline std::uint32_t fp4_code(float x) {
  constexpr std::array<float, 7> kBounds{0.00260417F, 0.0859375F, 0.20833333F, 0.29166667F,
                                         0.4166667F,  0.583333F,  0.8333333F};
  constexpr std::array<std::uint32_t, 8> kCodes{0, 1, 6, 7, 4, 5, 2, 3};
  std::size_t place = 0;
  for (const float bound : kBounds)
    if (std::abs(x) > bound) ++place;
  return kCodes[place] | (x < 0 ? 8U : 0U);
}

/// Among 256 ascending values.
inline std::uint8_t nearest_code(const std::vector<float>& code, float x) {
  const auto above = std::lower_bound(code.begin(), code.end(), x);
  if (above == code.begin()) return 0;
  auto place = static_cast<std::size_t>(above - code.begin());
  if (above == code.end() || x - code[place - 1] <= code[place] - x) --place;
  return static_cast<std::uint8_t>(place);
}

}  // namespace qlp::cpu

#include "quant/code_tables.h"

#include <algorithm>
#include <cmath>

namespace qlp {

std::array<float, 16> nf4_codes() {
  return {-1.0F,
          -0.6961928009986877F,
          -0.5250730514526367F,
          -0.39491748809814453F,
          -0.28444138169288635F,
          -0.18477343022823334F,
          -0.09105003625154495F,
          0.0F,
          0.07958029955625534F,
          0.16093020141124725F,
          0.24611230194568634F,
          0.33791524171829224F,
          0.44070982933044434F,
          0.5626170039176941F,
          0.7229568362236023F,
          1.0F};
}

std::array<float, 16> fp4_codes() {
  std::array<float, 16> codes{0,    0.0625F,  8,  12,  4,  6,  2,  3,  //
                              -0.F, -0.0625F, -8, -12, -4, -6, -2, -3};
  for (float& code : codes) code /= 12;  // the greatest
  return codes;
}

std::array<float, 256> dynamic_codes() {
  // An exponent from 10^-6 to 1; the smaller it is, the fewer steps the fraction between 0.1 and 1 has. Zero and 1 are
  // two codes of their own.
  constexpr int kExponents = 7;
  std::array<float, 256> codes{};
  std::size_t next = 0;
  for (int i = 0; i < kExponents; ++i) {
    const int steps = 1 << i;
    const auto boundary = [&](int k) { return 0.1F + 0.9F * static_cast<float>(k) / static_cast<float>(steps); };
    const double scale = std::pow(10.0, i - (kExponents - 1));
    for (int k = 0; k < steps; ++k) {
      const auto mean = static_cast<float>(scale * static_cast<double>((boundary(k) + boundary(k + 1)) / 2));
      codes[next++] = mean;
      codes[next++] = -mean;
    }
  }
  codes[next++] = 0;
  codes[next] = 1;
  std::ranges::sort(codes);
  return codes;
}

}  // namespace qlp

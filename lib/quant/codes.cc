#include "quant/codes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace qlp {

std::vector<double> nf4_values() {
  return {-1.0,
          -0.6961928009986877,
          -0.5250730514526367,
          -0.39491748809814453,
          -0.28444138169288635,
          -0.18477343022823334,
          -0.09105003625154495,
          0.0,
          0.07958029955625534,
          0.16093020141124725,
          0.24611230194568634,
          0.33791524171829224,
          0.44070982933044434,
          0.5626170039176941,
          0.7229568362236023,
          1.0};
}

std::vector<double> fp4_values() {
  std::vector<double> values{0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3};
  for (double& value : values) value /= 12;
  return values;
}

namespace {

/// create_dynamic_map, without what fills it up.
std::vector<double> decades(int exponent_bits, bool is_signed) {
  std::vector<double> values;
  for (int i = 0; i < exponent_bits; ++i) {
    const int means = 1 << (is_signed ? i : i + 1);  // between as many and one bounds from 0.1 to 1
    const double decade = std::pow(10.0, i - exponent_bits + 1);
    for (int j = 0; j < means; ++j) {
      const double mean = 0.1 + 0.9 * (j + 0.5) / means;
      values.push_back(decade * mean);
      if (is_signed) values.push_back(-decade * mean);
    }
  }
  values.push_back(0), values.push_back(1);
  return values;
}

}  // namespace

std::vector<double> dynamic_values(bool is_signed) {
  constexpr int kExponentBits = 7, kBits = 8;
  std::vector<double> values = decades(kExponentBits, is_signed);
  values.resize(std::size_t{1} << kBits, 0.0);
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<double> dynamic_values_of_4_bits() {
  constexpr int kExponentBits = 3;
  std::vector<double> values = decades(kExponentBits, true);
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace qlp

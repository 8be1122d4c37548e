// The values that the codes of bitsandbytes' formats stand for.
#pragma once

#include <array>

namespace qlp {

/// Of the 4-bit types, in the order of their codes, between -1 and 1 (functional.py, get_4bit_type; 0.43 to 0.50).
std::array<float, 16> nf4_codes();
std::array<float, 16> fp4_codes();

/// Of the signed 8-bit dynamic type, ascending (functional.py, create_dynamic_map).
std::array<float, 256> dynamic_codes();

}  // namespace qlp

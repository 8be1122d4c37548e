// The values that codes of 4 and 8 bits stand for in bitsandbytes (functional.py: get_4bit_type, create_dynamic_map).
#pragma once

#include <vector>

namespace qlp {

/// 16 values over the greatest: NormalFloat, of equal probability under a normal distribution (Dettmers et al., QLoRA).
std::vector<double> nf4_values();
/// 16 values over the greatest: sign, two bits of exponent, one of mantissa.
std::vector<double> fp4_values();
/// 256 values in ascending order: up to seven decades, each with twice as many values as the one below it.
std::vector<double> dynamic_values(bool is_signed);
/// 16 of them with signs, of three decades (torchao optim/quant_utils.py, create_dynamic_map(True, 3, 4)).
std::vector<double> dynamic_values_of_4_bits();

}  // namespace qlp

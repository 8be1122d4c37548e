// Numbers of optimizers one by one, and states in 8 bits block by block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tensor/cpu_codes.h"
#include "tensor/cpu_rows.h"
#include "tensor/kernels.h"

namespace qlp::cpu {

/// A block of a state in 8 bits, as numbers, and back.
class StateBlock {
 public:
  StateBlock(const Array& codes, const Blockwise& statistics, std::int64_t block, std::int64_t count)
      : at_(codes.data + block * statistics.blocksize), absmax_(statistics.absmax.data + block * 4) {
    code_.resize(256);
    load_row(code_.data(), statistics.code.data, DType::float32, 4, 256);
    const auto scale = load_as<float>(absmax_);
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(code_[load_as<std::uint8_t>(at_ + i)] * scale);
  }
  /// `keeps_sign`: a code of the other sign gives way to its neighbour.
  void store(bool keeps_sign) const {
    const float scale = greatest_of(numbers);
    store_as(absmax_, scale);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::uint8_t code = scale > 0 ? nearest_code(code_, numbers[i] / scale) : nearest_code(code_, 0);
      if (keeps_sign && std::signbit(code_[code]) != std::signbit(numbers[i]))
        code = static_cast<std::uint8_t>(numbers[i] > 0 ? code + 1 : std::max(code - 1, 0));
      store_as(at_ + i, code);
    }
  }
  std::vector<float> numbers;

 private:
  std::byte* at_;
  std::byte* absmax_;
  std::vector<float> code_;
};

/// The number of a dense array, and its place.
struct Cell {
  std::byte* at;
  DType dtype;
  double value;
};
inline Cell cell(const Array& array, std::int64_t i) {
  std::byte* const at = array.data + i * static_cast<std::int64_t>(size_of(array.dtype));
  return {at, array.dtype, load_number(at, array.dtype)};
}

}  // namespace qlp::cpu

// What an optimizer keeps of a parameter, beside it.
#pragma once

#include <cstdint>

#include "strided_view.h"

namespace qlp::kernels {

/// A moving average of something, one number for each element: in float32, or as codes of a table of 256 values over
/// the greatest absolute value of each block.
struct Average {
  float* numbers = nullptr;  ///< or these:
  std::uint8_t* codes = nullptr;
  float* absmax = nullptr;
  const float* code = nullptr;
  bool is_signed = true;  ///< the table
};

}  // namespace qlp::kernels

// Where the elements of a tensor lie, in elements from one to the next along each dimension.
#pragma once

#include <array>
#include <cstdint>

#include "base/shape.h"

namespace qlp {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Strides of a dense row-major tensor.
inline Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = step;
    step *= shape[static_cast<int>(i)];
  }
  return strides;
}

/// True if the elements lie row-major without gaps; dimensions of size 1 do not matter.
inline bool is_contiguous(const Shape& shape, const Strides& strides) {
  std::int64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    const auto dim = shape[static_cast<int>(i)];
    if (dim == 1) continue;
    if (strides[i] != step) return false;
    step *= dim;
  }
  return true;
}

}  // namespace qlp

// What a kernel sees of a tensor: elements in memory, nothing of who owns them.
#pragma once

#include "base/dtype.h"
#include "tensor/strides.h"

namespace qlp {

/// A strided view; a stride of 0 repeats. Without data: an operand that is not given.
struct Array {
  std::byte* data = nullptr;  ///< the first element
  DType dtype = DType::float32;
  Shape shape;
  Strides strides{};

  bool given() const { return data != nullptr; }
  std::int64_t numel() const { return shape.numel(); }
  std::int64_t size(int i) const { return shape[i]; }
  std::int64_t stride(int i) const {
    return strides[static_cast<std::size_t>(i < 0 ? i + static_cast<int>(shape.rank()) : i)];
  }
};

}  // namespace qlp

// The shape of a dense tensor: up to five dimensions, kept inline.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>

#include "base/bytes.h"
#include "base/dtype.h"

namespace qlp {

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 5;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    assert(dims.size() <= kMaxRank);
    for (auto dim : dims) dims_[rank_++] = dim;
  }

  constexpr std::size_t rank() const { return rank_; }
  /// Dimension `i`; a negative `i` counts from the end, as in Python.
  constexpr std::int64_t operator[](int i) const {
    return dims_[static_cast<std::size_t>(i < 0 ? i + static_cast<int>(rank_) : i)];
  }
  constexpr std::int64_t numel() const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  /// The same shape with dimension `i` replaced.
  constexpr Shape with(int i, std::int64_t dim) const {
    Shape out = *this;
    out.dims_[static_cast<std::size_t>(i < 0 ? i + static_cast<int>(rank_) : i)] = dim;
    return out;
  }
  constexpr void push_back(std::int64_t dim) {
    assert(rank_ < kMaxRank);
    dims_[rank_++] = dim;
  }
  constexpr const std::int64_t* begin() const { return dims_.data(); }
  constexpr const std::int64_t* end() const { return dims_.data() + rank_; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::uint8_t rank_ = 0;
};

/// Bytes of a dense tensor. Throws std::overflow_error past 2^64.
constexpr Bytes bytes_of(std::int64_t numel, DType dtype) {
  return Bytes{size_of(dtype)} * static_cast<std::uint64_t>(numel);
}
constexpr Bytes bytes_of(const Shape& shape, DType dtype) { return bytes_of(shape.numel(), dtype); }

/// "[4096, 14336]", as PyTorch prints sizes.
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[static_cast<int>(i)]);
  return text + "]";
}

}  // namespace qlp

// Walking over arrays on the CPU, row by row, and rows of any dtype as numbers of one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "tensor/array.h"
#include "tensor/number.h"

namespace qlp::cpu {

/// Elements that are converted at once.
inline constexpr std::int64_t kChunk = 512;

/// Nothing may be read or written where there is no memory: a tensor that lives on while its memory has gone.
inline void require_memory(const Array& array) {
  if (array.numel() != 0 && !array.given()) throw std::logic_error("an operation on memory that is gone");
}

/// Rows of N arrays that lie on each other, outer dimensions first.
template <std::size_t N>
struct Rows {
  Shape outer;
  std::int64_t length = 1;                                           ///< of a row
  std::array<std::array<std::int64_t, Shape::kMaxRank>, N> steps{};  ///< of the outer dimensions, in bytes
  std::array<std::int64_t, N> inner{};  ///< from one element of a row to the next, in bytes
};

/// The first array has the full shape, to which the others broadcast. Dimensions that follow on each other in all of
/// them become one.
template <std::size_t N>
Rows<N> rows_of(const std::array<const Array*, N>& arrays) {
  const Shape& shape = arrays[0]->shape;
  const int rank = static_cast<int>(shape.rank());
  Rows<N> rows;
  std::array<std::array<std::int64_t, N>, Shape::kMaxRank> steps{};  // of the dimensions that are left
  std::array<std::int64_t, Shape::kMaxRank> sizes{};
  std::size_t left = 0;
  for (int dim = 0; dim < rank; ++dim) {
    const std::int64_t size = shape[dim];
    if (size == 1) continue;
    std::array<std::int64_t, N> step{};
    for (std::size_t n = 0; n < N; ++n) {
      const Array& array = *arrays[n];
      const int own = dim - rank + static_cast<int>(array.shape.rank());
      const bool repeats = own < 0 || array.shape[own] == 1;
      step[n] = repeats ? 0 : array.stride(own) * static_cast<std::int64_t>(size_of(array.dtype));
    }
    bool joins = left > 0;
    for (std::size_t n = 0; n < N && joins; ++n) joins = steps[left - 1][n] == step[n] * size;
    if (joins) {
      sizes[left - 1] *= size, steps[left - 1] = step;
    } else {
      sizes[left] = size, steps[left++] = step;
    }
  }
  if (left == 0) return rows;
  --left;
  rows.length = sizes[left], rows.inner = steps[left];
  for (std::size_t dim = 0; dim < left; ++dim) {
    rows.outer.push_back(sizes[dim]);
    for (std::size_t n = 0; n < N; ++n) rows.steps[n][dim] = steps[dim][n];
  }
  return rows;
}

/// Calls f(pointers to the first elements) for every row.
template <std::size_t N, class F>
void for_each_row(const std::array<const Array*, N>& arrays, const Rows<N>& rows, F&& f) {
  if (arrays[0]->numel() == 0) return;
  std::array<std::byte*, N> at{};
  for (std::size_t n = 0; n < N; ++n) require_memory(*arrays[n]), at[n] = arrays[n]->data;
  std::array<std::int64_t, Shape::kMaxRank> index{};
  const int rank = static_cast<int>(rows.outer.rank());
  while (true) {
    f(at);
    int dim = rank - 1;
    for (; dim >= 0; --dim) {
      const auto d = static_cast<std::size_t>(dim);
      for (std::size_t n = 0; n < N; ++n) at[n] += rows.steps[n][d];
      if (++index[d] < rows.outer[dim]) break;
      for (std::size_t n = 0; n < N; ++n) at[n] -= rows.steps[n][d] * rows.outer[dim];
      index[d] = 0;
    }
    if (dim < 0) return;
  }
}

/// Calls f with a function that reads, or writes, one element of this dtype.
template <class F>
void with_reader(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f([](const std::byte* p) { return load_as<float>(p); });
    case DType::float16:
      return f([](const std::byte* p) { return from_float16(load_as<std::uint16_t>(p)); });
    case DType::bfloat16:
      return f([](const std::byte* p) { return from_bfloat16(load_as<std::uint16_t>(p)); });
    default:
      return f([dtype](const std::byte* p) { return load_number(p, dtype); });
  }
}
template <class F>
void with_writer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f([](std::byte* p, double v) { store_as(p, static_cast<float>(v)); });
    case DType::float16:
      return f([](std::byte* p, double v) { store_as(p, to_float16(static_cast<float>(v))); });
    case DType::bfloat16:
      return f([](std::byte* p, double v) { store_as(p, to_bfloat16(static_cast<float>(v))); });
    default:
      return f([dtype](std::byte* p, double v) { store_number(p, dtype, v); });
  }
}

/// `count` elements, `step` bytes apart, as numbers of T, and back.
template <class T>
void load_row(T* out, const std::byte* from, DType dtype, std::int64_t step, std::int64_t count) {
  with_reader(dtype, [&](auto&& read) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(read(from + i * step));
  });
}
template <class T>
void store_row(std::byte* to, DType dtype, std::int64_t step, const T* from, std::int64_t count) {
  with_writer(dtype, [&](auto&& write) {
    for (std::int64_t i = 0; i < count; ++i) write(to + i * step, static_cast<double>(from[i]));
  });
}

}  // namespace qlp::cpu

// How numbers of every element type are read and written: arithmetic is in float, int64 or double. The type is looked
// at as the kernel runs; all threads agree on it, so that costs little beside the memory access, and one kernel does
// for all types.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "strided_view.h"

namespace qlp::kernels {

__device__ inline float from_bfloat16(std::uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

/// To the nearest, ties to even; NaN stays NaN.
__device__ inline std::uint16_t to_bfloat16(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

__device__ inline float from_float16(std::uint16_t bits) {
  const unsigned sign = static_cast<unsigned>(bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1fU;
  const unsigned mantissa = bits & 0x3ffU;
  if (exponent == 0x1fU) return __uint_as_float(sign | 0x7f800000U | mantissa << 13);
  if (exponent != 0) return __uint_as_float(sign | (exponent + 112U) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 5.9604644775390625e-8F;  // 2^-24
  return sign ? -tiny : tiny;
}

/// To the nearest, ties to even; infinite past 65504.
__device__ inline std::uint16_t to_float16(float value) {
  const unsigned bits = __float_as_uint(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const unsigned magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 leaves the subnormal's bits lowest
    const unsigned shifted = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 0.5F));
    return static_cast<std::uint16_t>(sign | (shifted - 0x3f000000U));
  }
  const unsigned rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13);
}

/// Element `i`, in the number type that arithmetic uses.
template <class Number>
__device__ inline Number load(const void* data, Type type, std::int64_t i) {
  switch (type) {
    case Type::float32:
      return static_cast<Number>(static_cast<const float*>(data)[i]);
    case Type::float16:
      return static_cast<Number>(from_float16(static_cast<const std::uint16_t*>(data)[i]));
    case Type::bfloat16:
      return static_cast<Number>(from_bfloat16(static_cast<const std::uint16_t*>(data)[i]));
    case Type::float64:
      return static_cast<Number>(static_cast<const double*>(data)[i]);
    case Type::int64:
      return static_cast<Number>(static_cast<const std::int64_t*>(data)[i]);
    case Type::int32:
      return static_cast<Number>(static_cast<const std::int32_t*>(data)[i]);
    case Type::int16:
      return static_cast<Number>(static_cast<const std::int16_t*>(data)[i]);
    case Type::int8:
      return static_cast<Number>(static_cast<const std::int8_t*>(data)[i]);
    case Type::uint8:
    case Type::boolean:
      return static_cast<Number>(static_cast<const std::uint8_t*>(data)[i]);
  }
  return Number{};
}

template <class Number>
__device__ inline void store(void* data, Type type, std::int64_t i, Number value) {
  switch (type) {
    case Type::float32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case Type::float16:
      static_cast<std::uint16_t*>(data)[i] = to_float16(static_cast<float>(value));
      return;
    case Type::bfloat16:
      static_cast<std::uint16_t*>(data)[i] = to_bfloat16(static_cast<float>(value));
      return;
    case Type::float64:
      static_cast<double*>(data)[i] = static_cast<double>(value);
      return;
    case Type::int64:
      static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(value);
      return;
    case Type::int32:
      static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value);
      return;
    case Type::int16:
      static_cast<std::int16_t*>(data)[i] = static_cast<std::int16_t>(value);
      return;
    case Type::int8:
      static_cast<std::int8_t*>(data)[i] = static_cast<std::int8_t>(value);
      return;
    case Type::uint8:
      static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(value);
      return;
    case Type::boolean:
      static_cast<std::uint8_t*>(data)[i] = value != Number{} ? 1 : 0;
      return;
  }
}

/// Where element `linear`, counted row-major over the first `rank` dimensions, lies.
__device__ inline std::int64_t offset_of(const View& view, std::int64_t linear, int rank) {
  std::int64_t offset = 0;
  for (int i = rank; i-- > 1;) {
    offset += linear % view.size[i] * view.stride[i];
    linear /= view.size[i];
  }
  return rank > 0 ? offset + linear * view.stride[0] : 0;
}

/// Element `linear` of all.
template <class Number>
__device__ inline Number load_at(const View& view, std::int64_t linear) {
  return load<Number>(view.data, view.type, offset_of(view, linear, view.rank));
}
template <class Number>
__device__ inline void store_at(const View& view, std::int64_t linear, Number value) {
  store(view.data, view.type, offset_of(view, linear, view.rank), value);
}

/// One row, along the last dimension.
struct Row {
  void* data;
  Type type;
  std::int64_t base, stride, width;

  __device__ float operator[](std::int64_t i) const { return load<float>(data, type, base + i * stride); }
  __device__ void set(std::int64_t i, float value) const { store(data, type, base + i * stride, value); }
};
/// Row `index`, counted row-major over the other dimensions.
__device__ inline Row row_of(const View& view, std::int64_t index) {
  const int last = view.rank - 1;
  return {view.data, view.type, offset_of(view, index, last), view.stride[last], view.size[last]};
}

}  // namespace qlp::kernels

// Activations and their slopes, in float or double.
#pragma once

#include <cuda_runtime.h>

namespace qlp::kernels {

template <class Number>
__device__ inline Number logistic(Number x) {
  return Number{1} / (Number{1} + exp(-x));
}

inline constexpr double kGeluInner = 0.7978845608028654, kGeluCubic = 0.044715;  // sqrt(2 / pi)

template <class Number>
__device__ inline Number gelu_tanh(Number x) {
  const Number inner = static_cast<Number>(kGeluInner) * (x + static_cast<Number>(kGeluCubic) * x * x * x);
  return static_cast<Number>(0.5) * x * (Number{1} + tanh(inner));
}

template <class Number>
__device__ inline Number silu(Number x) {
  return x * logistic(x);
}

template <class Number>
__device__ inline Number silu_slope(Number x) {
  const Number s = logistic(x);
  return s * (Number{1} + x * (Number{1} - s));
}

template <class Number>
__device__ inline Number gelu_tanh_slope(Number x) {
  const Number cubic = static_cast<Number>(kGeluCubic), half = static_cast<Number>(0.5);
  const Number t = tanh(static_cast<Number>(kGeluInner) * (x + cubic * x * x * x));
  const Number inner_slope = static_cast<Number>(kGeluInner) * (Number{1} + 3 * cubic * x * x);
  return half * (Number{1} + t) + half * x * (Number{1} - t * t) * inner_slope;
}

}  // namespace qlp::kernels

// Operations on each element by itself. All views have the sizes of the result; operands broadcast by strides of 0.
#pragma once

#include "strided_view.h"

namespace qlp::kernels {

/// y of an x, and of numbers p and q.
enum class Unary : std::uint8_t {
  copy,  ///< also from one type to another
  add,   ///< x + p
  mul,   ///< x * p
  neg,
  abs,
  square,
  cube,
  sqrt,
  rsqrt,
  reciprocal,
  cos,
  sin,
  tanh,
  silu,
  sigmoid,
  log_sigmoid,
  gelu_tanh,  ///< the approximation by tanh
  at_most,    ///< min(x, p)
  at_least,   ///< max(x, p)
  select,     ///< x != 0 ? p : q
  not_negative,
  is_nan,
  is_inf,
};
cudaError_t unary(Unary op, View out, View x, double p, double q, cudaStream_t stream);

/// z of x and y, and of a number p.
enum class Binary : std::uint8_t {
  add,  ///< x + p * y
  mul,  ///< p * x * y
  div,
  logical_or,
  logical_and,
  less_equal,
  greater,
  equal,
  masked,              ///< y != 0 ? 0 : x, whatever x holds
  silu_backward,       ///< x: gradient of the result, y: operand
  gelu_tanh_backward,  ///< the same
  tanh_backward,       ///< x: gradient of the result, y: result
  sigmoid_backward,    ///< the same
  pass_at_most,        ///< y <= p ? x : 0
  pass_within,         ///< -p <= y <= p ? x : 0
};
cudaError_t binary(Binary op, View out, View x, View y, double p, cudaStream_t stream);

/// flag becomes 1 if any element is infinite or no number; else it stays.
cudaError_t flag_non_finite(float* flag, View x, cudaStream_t stream);

}  // namespace qlp::kernels

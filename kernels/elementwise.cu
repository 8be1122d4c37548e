#include "activations.cuh"
#include "elementwise.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

// One kernel for all operations of a kind: which it is, all threads agree on.

template <class Number>
__device__ Number apply(Unary op, Number x, Number p, Number q) {
  switch (op) {
    case Unary::copy:
      return x;
    case Unary::add:
      return x + p;
    case Unary::mul:
      return x * p;
    case Unary::neg:
      return -x;
    case Unary::abs:
      return x < Number{} ? -x : x;
    case Unary::square:
      return x * x;
    case Unary::cube:
      return x * x * x;
    case Unary::sqrt:
      return sqrt(x);
    case Unary::rsqrt:
      return Number{1} / sqrt(x);
    case Unary::reciprocal:
      return Number{1} / x;
    case Unary::cos:
      return cos(x);
    case Unary::sin:
      return sin(x);
    case Unary::tanh:
      return tanh(x);
    case Unary::silu:
      return silu(x);
    case Unary::sigmoid:
      return Number{1} / (Number{1} + exp(-x));
    case Unary::log_sigmoid:
      return (x < Number{} ? x : Number{}) - log1p(exp(x < Number{} ? x : -x));
    case Unary::gelu_tanh:
      return gelu_tanh(x);
    case Unary::at_most:
      return x > p ? p : x;
    case Unary::at_least:
      return x < p ? p : x;
    case Unary::select:
      return x != Number{} ? p : q;
    case Unary::not_negative:
      return static_cast<Number>(x >= Number{});
    case Unary::is_nan:
      return static_cast<Number>(isnan(x));
    case Unary::is_inf:
      return static_cast<Number>(isinf(x));
  }
  return Number{};
}

template <class Number>
__device__ Number apply(Binary op, Number x, Number y, Number p) {
  switch (op) {
    case Binary::add:
      return x + p * y;
    case Binary::mul:
      return p * x * y;
    case Binary::div:
      return x / y;
    case Binary::logical_or:
      return static_cast<Number>(x != Number{} || y != Number{});
    case Binary::logical_and:
      return static_cast<Number>(x != Number{} && y != Number{});
    case Binary::less_equal:
      return static_cast<Number>(x <= y);
    case Binary::greater:
      return static_cast<Number>(x > y);
    case Binary::equal:
      return static_cast<Number>(x == y);
    case Binary::masked:
      return y != Number{} ? Number{} : x;
    case Binary::silu_backward:
      return x * silu_slope(y);
    case Binary::gelu_tanh_backward:
      return x * gelu_tanh_slope(y);
    case Binary::tanh_backward:
      return x * (Number{1} - y * y);
    case Binary::sigmoid_backward:
      return x * (Number{1} - y) * y;
    case Binary::pass_at_most:
      return y <= p ? x : Number{};
    case Binary::pass_within:
      return y <= p && y >= -p ? x : Number{};
  }
  return Number{};
}

template <class Number>
__global__ void unary_kernel(Unary op, View out, View x, double p, double q, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i < count) store_at(out, i, apply(op, load_at<Number>(x, i), static_cast<Number>(p), static_cast<Number>(q)));
}

template <class Number>
__global__ void binary_kernel(Binary op, View out, View x, View y, double p, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i < count) store_at(out, i, apply(op, load_at<Number>(x, i), load_at<Number>(y, i), static_cast<Number>(p)));
}

__global__ void flag_kernel(float* flag, View x, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i >= count) return;
  const float value = load_at<float>(x, i);
  if (isnan(value) || isinf(value)) *flag = 1.0F;  // all that write it write the same
}

/// float holds every number of these types.
bool fits_float(const View& view) {
  return view.type != Type::float64 && view.type != Type::int64 && view.type != Type::int32;
}

}  // namespace

cudaError_t unary(Unary op, View out, View x, double p, double q, cudaStream_t stream) {
  View views[] = {out, x};
  join_dimensions(views);
  const auto kernel = fits_float(out) && fits_float(x) ? unary_kernel<float> : unary_kernel<double>;
  return launch_over(out.numel(), kernel, stream, op, views[0], views[1], p, q, out.numel());
}

cudaError_t binary(Binary op, View out, View x, View y, double p, cudaStream_t stream) {
  View views[] = {out, x, y};
  join_dimensions(views);
  const auto kernel = fits_float(out) && fits_float(x) && fits_float(y) ? binary_kernel<float> : binary_kernel<double>;
  return launch_over(out.numel(), kernel, stream, op, views[0], views[1], views[2], p, out.numel());
}

cudaError_t flag_non_finite(float* flag, View x, cudaStream_t stream) {
  View views[] = {x};
  join_dimensions(views);
  return launch_over(x.numel(), flag_kernel, stream, flag, views[0], x.numel());
}

}  // namespace qlp::kernels

#include <cmath>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kGeluCube = 0.044715;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// log(sigmoid(x)), which is no more than x, without exp of what is large.
double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }

double silu(double x) { return x * sigmoid(x); }

double gelu(double x) { return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCube * x * x * x))); }

double gelu_slope(double x) {
  const double t = std::tanh(kGeluScale * (x + kGeluCube * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCube * x * x);
}

double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

/// Chunk by chunk in double, as the dtypes of operands and result would make too many loops.
template <class F>
void apply(const Array& out, const Array& x, F&& f) {
  const std::array<const Array*, 2> arrays{&out, &x};
  const Rows<2> rows = rows_of(arrays);
  std::array<double, kChunk> a;
  for_each_row(arrays, rows, [&](const auto& at) {
    for (std::int64_t start = 0; start < rows.length; start += kChunk) {
      const std::int64_t n = std::min(kChunk, rows.length - start);
      load_row(a.data(), at[1] + start * rows.inner[1], x.dtype, rows.inner[1], n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) a[i] = f(a[i]);
      store_row(at[0] + start * rows.inner[0], out.dtype, rows.inner[0], a.data(), n);
    }
  });
}

template <class F>
void apply(const Array& out, const Array& x, const Array& y, F&& f) {
  const std::array<const Array*, 3> arrays{&out, &x, &y};
  const Rows<3> rows = rows_of(arrays);
  std::array<double, kChunk> a, b;
  for_each_row(arrays, rows, [&](const auto& at) {
    for (std::int64_t start = 0; start < rows.length; start += kChunk) {
      const std::int64_t n = std::min(kChunk, rows.length - start);
      load_row(a.data(), at[1] + start * rows.inner[1], x.dtype, rows.inner[1], n);
      load_row(b.data(), at[2] + start * rows.inner[2], y.dtype, rows.inner[2], n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) a[i] = f(a[i], b[i]);
      store_row(at[0] + start * rows.inner[0], out.dtype, rows.inner[0], a.data(), n);
    }
  });
}

/// Both gradients of act(gate) * up, over their operands.
template <class Act, class Slope>
void gated_backward(const Array& gate, const Array& up, const Array& grad, Act&& act, Slope&& slope) {
  const std::array<const Array*, 3> arrays{&gate, &up, &grad};
  const Rows<3> rows = rows_of(arrays);
  std::array<double, kChunk> a, b, g;
  for_each_row(arrays, rows, [&](const auto& at) {
    for (std::int64_t start = 0; start < rows.length; start += kChunk) {
      const std::int64_t n = std::min(kChunk, rows.length - start);
      load_row(a.data(), at[0] + start * rows.inner[0], gate.dtype, rows.inner[0], n);
      load_row(b.data(), at[1] + start * rows.inner[1], up.dtype, rows.inner[1], n);
      load_row(g.data(), at[2] + start * rows.inner[2], grad.dtype, rows.inner[2], n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const double x = a[i];
        a[i] = g[i] * b[i] * slope(x), b[i] = g[i] * act(x);
      }
      store_row(at[0] + start * rows.inner[0], gate.dtype, rows.inner[0], a.data(), n);
      store_row(at[1] + start * rows.inner[1], up.dtype, rows.inner[1], b.data(), n);
    }
  });
}

}  // namespace

void CpuKernels::gated_product(StreamId, const Array& out, const Array& gate, const Array& up, bool is_gelu) {
  if (is_gelu)
    apply(out, gate, up, [](double a, double b) { return gelu(a) * b; });
  else
    apply(out, gate, up, [](double a, double b) { return silu(a) * b; });
}

void CpuKernels::gated_product_backward(StreamId, const Array& gate, const Array& up, const Array& grad, bool is_gelu) {
  if (is_gelu)
    gated_backward(gate, up, grad, gelu, gelu_slope);
  else
    gated_backward(gate, up, grad, silu, silu_slope);
}

void CpuKernels::unary(StreamId, Unary op, const Array& out, const Array& x, double p, double q) {
  switch (op) {
    case Unary::copy:
      return apply(out, x, [](double v) { return v; });
    case Unary::add:
      return apply(out, x, [p](double v) { return v + p; });
    case Unary::mul:
      return apply(out, x, [p](double v) { return v * p; });
    case Unary::neg:
      return apply(out, x, [](double v) { return -v; });
    case Unary::abs:
      return apply(out, x, [](double v) { return std::abs(v); });
    case Unary::square:
      return apply(out, x, [](double v) { return v * v; });
    case Unary::cube:
      return apply(out, x, [](double v) { return v * v * v; });
    case Unary::sqrt:
      return apply(out, x, [](double v) { return std::sqrt(v); });
    case Unary::rsqrt:
      return apply(out, x, [](double v) { return 1 / std::sqrt(v); });
    case Unary::reciprocal:
      return apply(out, x, [](double v) { return 1 / v; });
    case Unary::cos:
      return apply(out, x, [](double v) { return std::cos(v); });
    case Unary::sin:
      return apply(out, x, [](double v) { return std::sin(v); });
    case Unary::tanh:
      return apply(out, x, [](double v) { return std::tanh(v); });
    case Unary::silu:
      return apply(out, x, silu);
    case Unary::sigmoid:
      return apply(out, x, sigmoid);
    case Unary::log_sigmoid:
      return apply(out, x, log_sigmoid);
    case Unary::gelu_tanh:
      return apply(out, x, gelu);
    case Unary::at_most:  // no number stays none
      return apply(out, x, [p](double v) { return v > p ? p : v; });
    case Unary::at_least:
      return apply(out, x, [p](double v) { return v < p ? p : v; });
    case Unary::select:
      return apply(out, x, [p, q](double v) { return v != 0 ? p : q; });
    case Unary::not_negative:
      return apply(out, x, [](double v) { return v >= 0 ? 1.0 : 0.0; });
    case Unary::is_nan:
      return apply(out, x, [](double v) { return std::isnan(v) ? 1.0 : 0.0; });
    case Unary::is_inf:
      return apply(out, x, [](double v) { return std::isinf(v) ? 1.0 : 0.0; });
  }
}

void CpuKernels::binary(StreamId, Binary op, const Array& out, const Array& x, const Array& y, double p) {
  switch (op) {
    case Binary::add:
      return apply(out, x, y, [p](double a, double b) { return a + p * b; });
    case Binary::mul:
      return apply(out, x, y, [p](double a, double b) { return p * a * b; });
    case Binary::div:
      return apply(out, x, y, [](double a, double b) { return a / b; });
    case Binary::logical_or:
      return apply(out, x, y, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
    case Binary::logical_and:
      return apply(out, x, y, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
    case Binary::less_equal:
      return apply(out, x, y, [](double a, double b) { return a <= b ? 1.0 : 0.0; });
    case Binary::greater:
      return apply(out, x, y, [](double a, double b) { return a > b ? 1.0 : 0.0; });
    case Binary::equal:
      return apply(out, x, y, [](double a, double b) { return a == b ? 1.0 : 0.0; });
    case Binary::masked:
      return apply(out, x, y, [](double a, double b) { return b != 0 ? 0.0 : a; });
    case Binary::silu_backward:
      return apply(out, x, y, [](double grad, double v) { return grad * silu_slope(v); });
    case Binary::gelu_tanh_backward:
      return apply(out, x, y, [](double grad, double v) { return grad * gelu_slope(v); });
    case Binary::tanh_backward:
      return apply(out, x, y, [](double grad, double result) { return grad * (1 - result * result); });
    case Binary::sigmoid_backward:
      return apply(out, x, y, [](double grad, double result) { return grad * (1 - result) * result; });
    case Binary::pass_at_most:
      return apply(out, x, y, [p](double a, double b) { return b <= p ? a : 0.0; });
    case Binary::pass_within:
      return apply(out, x, y, [p](double a, double b) { return std::abs(b) <= p ? a : 0.0; });
  }
}

}  // namespace qlp

#include <cmath>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// An array that lies densely as rows of its last dimension.
class DenseRows {
 public:
  explicit DenseRows(const Array& array)
      : array_(array), width_(array.size(-1)), step_(static_cast<std::int64_t>(size_of(array.dtype))) {
    require_memory(array);
  }
  std::int64_t count() const { return array_.numel() / width_; }
  void load(std::vector<double>& out, std::int64_t row) const {
    out.resize(static_cast<std::size_t>(width_));
    load_row(out.data(), array_.data + row * width_ * step_, array_.dtype, step_, width_);
  }
  void store(const std::vector<double>& from, std::int64_t row) const {
    store_row(array_.data + row * width_ * step_, array_.dtype, step_, from.data(), width_);
  }

 private:
  const Array& array_;
  std::int64_t width_, step_;
};

}  // namespace

void CpuKernels::rms_norm(StreamId, const Array& out, const Array& rstd, const Array& x, const Array& gain, double eps,
                          double offset) {
  const DenseRows to(out), from(x), gains(gain);
  require_memory(rstd);
  std::vector<double> row, weight;
  gains.load(weight, 0);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    from.load(row, i);
    double sum = 0;
    for (const double v : row) sum += v * v;
    const double root = 1 / std::sqrt(sum / static_cast<double>(row.size()) + eps);
    store_as(rstd.data + i * 4, static_cast<float>(root));
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= root * (weight[j] + offset);
    to.store(row, i);
  }
}

void CpuKernels::rms_norm_backward(StreamId, const Array& dx, const Array& dgain, const Array& grad, const Array& x,
                                   const Array& gain, const Array& rstd, double offset) {
  const DenseRows to(dx), grads(grad), from(x), gains(gain);
  require_memory(rstd);
  std::vector<double> g, row, weight, sums(static_cast<std::size_t>(x.size(-1)));
  gains.load(weight, 0);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    grads.load(g, i), from.load(row, i);
    const double root = load_as<float>(rstd.data + i * 4);
    double product = 0;
    for (std::size_t j = 0; j < row.size(); ++j) {
      sums[j] += g[j] * row[j] * root;
      g[j] *= weight[j] + offset;
      product += g[j] * row[j];
    }
    product *= root * root / static_cast<double>(row.size());
    for (std::size_t j = 0; j < row.size(); ++j) g[j] = root * (g[j] - product * row[j]);
    to.store(g, i);
  }
  if (dgain.given()) DenseRows(dgain).store(sums, 0);
}

void CpuKernels::rotate_in_place(StreamId, const Array& x, const Array& cos, const Array& sin, bool inverse) {
  for (const Array* array : {&x, &cos, &sin}) require_memory(*array);
  const std::int64_t rows = x.size(2), width = x.size(3), half = width / 2;
  const auto size = static_cast<std::int64_t>(size_of(x.dtype)), table = static_cast<std::int64_t>(size_of(cos.dtype));
  std::vector<double> c(static_cast<std::size_t>(width)), s(c.size()), row(c.size()), turned(c.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    load_row(c.data(), cos.data + i * cos.stride(-2) * table, cos.dtype, cos.stride(-1) * table, width);
    load_row(s.data(), sin.data + i * sin.stride(-2) * table, sin.dtype, sin.stride(-1) * table, width);
    for (std::int64_t b = 0; b < x.size(0); ++b)
      for (std::int64_t h = 0; h < x.size(1); ++h) {
        std::byte* const at = x.data + (b * x.stride(0) + h * x.stride(1) + i * x.stride(2)) * size;
        load_row(row.data(), at, x.dtype, x.stride(3) * size, width);
        for (std::size_t j = 0; j < row.size(); ++j) {
          const auto n = static_cast<std::size_t>(half);
          const bool low = j < n;
          const std::size_t other = low ? j + n : j - n;
          const double sign = low != inverse ? -1 : 1;  // rotate_half's, or that of its transpose
          turned[j] = row[j] * c[j] + sign * row[other] * (inverse ? s[other] : s[j]);
        }
        store_row(at, x.dtype, x.stride(3) * size, turned.data(), width);
      }
  }
}

}  // namespace qlp

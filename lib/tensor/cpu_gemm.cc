#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// One matrix of a batch: rows and columns of an array of rank 2 or 3.
struct Matrix {
  std::byte* data;
  DType dtype;
  std::int64_t rows, columns, row_step, column_step;  ///< steps in bytes
};

Matrix matrix_of(const Array& array, std::int64_t batch) {
  const auto size = static_cast<std::int64_t>(size_of(array.dtype));
  const bool batched = array.shape.rank() == 3;
  std::byte* const data = array.data + (batched && array.size(0) > 1 ? batch * array.stride(0) * size : 0);
  return {data, array.dtype, array.size(-2), array.size(-1), array.stride(-2) * size, array.stride(-1) * size};
}

/// Row by row of the whole matrix, densely.
template <class T>
std::vector<T> packed(const Matrix& m) {
  std::vector<T> out(static_cast<std::size_t>(m.rows * m.columns));
  for (std::int64_t i = 0; i < m.rows; ++i)
    load_row(out.data() + i * m.columns, m.data + i * m.row_step, m.dtype, m.column_step, m.columns);
  return out;
}

/// Rows of a that pass over b together, and rows of b that stay in the cache while they do.
constexpr std::int64_t kRows = 4, kDepth = 128;

template <class T>
void multiply_rows(const T* a, const T* b, T* sums, std::int64_t rows, std::int64_t n, std::int64_t k) {
  for (std::int64_t from = 0; from < k; from += kDepth) {
    const std::int64_t to = std::min(k, from + kDepth);
    for (std::int64_t i = 0; i < rows; i += kRows) {
      const std::int64_t together = std::min(kRows, rows - i);
      for (std::int64_t p = from; p < to; ++p) {
        const T* const right = b + p * n;
        for (std::int64_t r = 0; r < together; ++r) {
          const T left = a[(i + r) * k + p];
          T* const sum = sums + (i + r) * n;
          for (std::int64_t j = 0; j < n; ++j) sum[j] += left * right[j];
        }
      }
    }
  }
}

template <class T>
void multiply(const Matrix& out, const Matrix& a, const Matrix& b, double alpha, double beta) {
  const std::vector<T> left = packed<T>(a), right = packed<T>(b);
  const std::int64_t m = a.rows, n = b.columns, k = a.columns;
  std::vector<T> sums(static_cast<std::size_t>(m * n), T{0});
  multiply_rows(left.data(), right.data(), sums.data(), m, n, k);
  std::vector<T> before(static_cast<std::size_t>(beta != 0 ? n : 0));
  for (std::int64_t i = 0; i < m; ++i) {
    T* const row = sums.data() + i * n;
    if (alpha != 1)
      for (std::int64_t j = 0; j < n; ++j) row[j] *= static_cast<T>(alpha);
    if (beta != 0) {
      load_row(before.data(), out.data + i * out.row_step, out.dtype, out.column_step, n);
      for (std::int64_t j = 0; j < n; ++j) row[j] += static_cast<T>(beta) * before[static_cast<std::size_t>(j)];
    }
    store_row(out.data + i * out.row_step, out.dtype, out.column_step, row, n);
  }
}

}  // namespace

void CpuKernels::gemm(StreamId, const Array& out, const Array& a, const Array& b, double alpha, double beta) {
  for (const Array* array : {&out, &a, &b}) require_memory(*array);
  if (a.size(-1) != b.size(-2) || a.size(-2) != out.size(-2) || b.size(-1) != out.size(-1))
    throw std::logic_error("a product of " + to_string(a.shape) + " and " + to_string(b.shape) + " that gives " +
                           to_string(out.shape));
  const std::int64_t batches = out.shape.rank() == 3 ? out.size(0) : 1;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Matrix to = matrix_of(out, i), left = matrix_of(a, i), right = matrix_of(b, i);
    if (out.dtype == DType::float64)
      multiply<double>(to, left, right, alpha, beta);
    else
      multiply<float>(to, left, right, alpha, beta);
  }
}

}  // namespace qlp

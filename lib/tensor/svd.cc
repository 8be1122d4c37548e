#include "tensor/svd.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Numbers to which cuSOLVER rounds each part of a workspace.
std::int64_t rounded(std::int64_t numbers) { return round_up(numbers, 32); }

/// Of the Jacobi method on a square matrix: pairs of blocks of 16 columns.
std::int64_t square_workspace(std::int64_t n) {
  const std::int64_t pairs = ceil_div(ceil_div(n, 16), 2), blocks = 2 * pairs;
  return rounded(2 * n * n + rounded(n + blocks * blocks + 1024 + 2049 * pairs));
}

/// Of geqrf and ormqr on a matrix [rows, columns] that is no wider than tall.
std::int64_t qr_workspace(std::int64_t rows, std::int64_t columns, CuSolver cusolver) {
  const std::int64_t block = cusolver == CuSolver::v11_7_3 ? 256 : 128;
  const std::int64_t geqrf = 8 * block * block + 4 * block * std::max(block, columns);
  if (cusolver == CuSolver::v11_4_5) return std::max(geqrf, rounded(std::int64_t{128} * 257 + rows + 129 * columns));
  const std::int64_t vectors = block * (block + 1) + rounded(columns * (rows + columns));
  std::int64_t products = block * rows + 2 * block * columns + (rows <= 32 ? 0 : rounded(columns));
  if (cusolver == CuSolver::v11_6_1) products = rounded(rows + 129 * columns);
  return std::max(geqrf + 32, vectors + products);
}

constexpr std::int64_t kBatched = 992;  // cusolverDnSgesvdjBatched_bufferSize, up to 32 x 32

using Columns = std::vector<std::vector<double>>;

/// Columns and right vectors of a tall matrix, turned against each other until they are orthogonal (one-sided Jacobi).
void make_orthogonal(Columns& columns, Columns& right) {
  constexpr int kMostSweeps = 60;
  constexpr double kSmallest = 1e-12;
  const auto dot = [](const auto& a, const auto& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); };
  const auto turn = [](auto& a, auto& b, double cosine, double sine) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = a[i], y = b[i];
      a[i] = cosine * x - sine * y, b[i] = sine * x + cosine * y;
    }
  };
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool turned = false;
    for (std::size_t p = 0; p < columns.size(); ++p)
      for (std::size_t q = p + 1; q < columns.size(); ++q) {
        const double alpha = dot(columns[p], columns[p]), beta = dot(columns[q], columns[q]);
        const double gamma = dot(columns[p], columns[q]);
        if (std::abs(gamma) <= kSmallest * std::sqrt(alpha * beta)) continue;
        turned = true;
        const double zeta = (beta - alpha) / (2 * gamma);
        const double tangent = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + tangent * tangent);
        turn(columns[p], columns[q], cosine, cosine * tangent);
        turn(right[p], right[q], cosine, cosine * tangent);
      }
    if (!turned) return;
  }
}

/// One vector after the other, as rows; zeros where there is no direction.
struct Vectors {
  std::vector<double> long_side, values, short_side;
};
Vectors decompose(Columns columns) {
  Columns right(columns.size(), std::vector<double>(columns.size()));
  for (std::size_t i = 0; i < right.size(); ++i) right[i][i] = 1;
  make_orthogonal(columns, right);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < columns.size(); ++i)
    order.emplace_back(std::sqrt(std::inner_product(columns[i].begin(), columns[i].end(), columns[i].begin(), 0.0)), i);
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<double, std::size_t>::first);
  Vectors out;
  for (const auto& [value, i] : order) {
    out.values.push_back(value);
    for (const double x : columns[i]) out.long_side.push_back(value > 0 ? x / value : 0);
    out.short_side.insert(out.short_side.end(), right[i].begin(), right[i].end());
  }
  return out;
}

/// On the host, wherever the matrix is: a row-major copy of it.
void work_out(Context& ctx, const Tensor& copy, const Svd& out) {
  Kernels* const kernels = ctx.kernels(copy);
  if (!kernels) return;
  const auto m = static_cast<std::size_t>(copy.size(0)), n = static_cast<std::size_t>(copy.size(1));
  std::vector<float> numbers(m * n);
  kernels->download(ctx.stream, numbers.data(), copy.data(), numbers.size() * sizeof(float));
  const bool tall = m >= n;
  Columns columns(tall ? n : m, std::vector<double>(tall ? m : n));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      (tall ? columns[j][i] : columns[i][j]) = static_cast<double>(numbers[i * n + j]);
  const Vectors vectors = decompose(std::move(columns));
  upload(ctx, out.ut, tall ? vectors.long_side : vectors.short_side);
  upload(ctx, out.s, vectors.values);
  upload(ctx, out.vh, tall ? vectors.short_side : vectors.long_side);
}

}  // namespace

std::int64_t gesvdj_workspace(std::int64_t m, std::int64_t n, CuSolver cusolver) {
  const std::int64_t rows = std::max(m, n), columns = std::min(m, n);
  if (m == n) return square_workspace(n);
  const std::int64_t square = rounded(columns * columns);
  const std::int64_t transposed = n > m ? rounded(m * n) : 0;
  return std::max({square_workspace(columns) + square, square + rounded(rows * columns),
                   transposed + rounded(columns) + qr_workspace(rows, columns, cusolver)});
}

/// torch 2.4 to 2.14: ATen/native/BatchLinearAlgebra.cpp, _linalg_svd_out; cuda/linalg/BatchLinearAlgebraLib.cpp,
/// svd_cusolver, whose driver is gesvdj; small square matrices go to the batched one.
Svd svd(Context& ctx, const Tensor& matrix, CuSolver cusolver) {
  const std::int64_t m = matrix.size(0), n = matrix.size(1), k = std::min(m, n);
  constexpr std::int64_t kLargestBatched = 32;
  Svd out;
  out.ut = empty(ctx, {k, m}, DType::float32, Op::linalg_svd);
  out.vh = empty(ctx, {k, n}, DType::float32, Op::linalg_svd);
  out.s = empty(ctx, {k}, DType::float32, Op::linalg_svd);
  const Tensor info = empty(ctx, {}, DType::int32, Op::zeros);
  {
    const Tensor copy = empty(ctx, {m, n}, DType::float32, Op::clone);
    copy_into(ctx, copy, matrix);
    const bool batched = m == n && n <= kLargestBatched;
    scratch(ctx,
            size_of(DType::float32) * static_cast<std::uint64_t>(batched ? kBatched : gesvdj_workspace(m, n, cusolver)),
            Op::linalg_svd);
    work_out(ctx, copy, out);
  }
  ctx.device.synchronize();  // info is read
  const Tensor any = empty(ctx, {}, DType::boolean, Op::any);
  scratch(ctx, size_of(DType::boolean), Op::any);
  return out;
}

}  // namespace qlp

// Singular value decompositions, as torch.linalg.svd has cuSOLVER make them.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/cusolver.h"

namespace qlp {

/// Float32 numbers that cusolverDnSgesvdj asks for, with vectors and econ, for a matrix [m, n].
///
/// The closed form of what cusolverDnSgesvdj_bufferSize answers. The libraries themselves
/// (cuSOLVER 11.4.5.107, 11.6.1.9, 11.7.1.2, 11.7.3.90 and 12.0.4) gave the same for each of 59,000 shapes up to
/// 300,000 rows or columns, on handles with the properties of an A100, an H100 and a B200, which make no difference.
std::int64_t gesvdj_workspace(std::int64_t m, std::int64_t n, CuSolver cusolver);

/// The reduced decomposition of a matrix [m, n] with k = min(m, n).
struct Svd {
  Tensor ut;  ///< [k, m]: the left vectors, which cuSOLVER gives by columns
  Tensor s;   ///< [k], falling
  Tensor vh;  ///< [k, n]
};

/// torch.linalg.svd(matrix, full_matrices=False) of a float32 matrix, where the Jacobi method converges.
Svd svd(Context& ctx, const Tensor& matrix, CuSolver cusolver);

}  // namespace qlp
